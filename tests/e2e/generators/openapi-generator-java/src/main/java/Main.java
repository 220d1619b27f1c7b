import org.openapitools.client.ApiClient;
import org.openapitools.client.api.HalfMessagesApi;
import org.openapitools.client.model.Decision;
import org.openapitools.client.model.EndRequest;
import org.openapitools.client.model.PrepareRequest;

class Main {
    public static void main(String[] arguments) throws Exception {
        var client = new ApiClient();
        client.updateBaseUri(System.getenv("OUTBOX_API_URL"));
        var messages = new HalfMessagesApi(client);
        var request = new PrepareRequest()
                .producerGroup(System.getenv("PRODUCER_GROUP"))
                .topic(System.getenv("TOPIC"))
                .value("invoice");
        var id = messages.prepareHalfMessage(request, null, null).getMessageId();
        messages.endHalfMessage(id, new EndRequest().decision(Decision.DECISION_COMMIT), "wait=30", null);
        var got = messages.getHalfMessage(id, null);
        System.out.println(id + " " + got.getState() + " " + got.getPublication().getOffset());
    }
}
