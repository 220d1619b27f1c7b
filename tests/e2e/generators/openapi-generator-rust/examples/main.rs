use openapi::apis::{configuration::Configuration, half_messages_api as messages};
use openapi::models::{Decision, EndRequest, PrepareRequest};
use std::{env::var, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    let api = Configuration { base_path: var("OUTBOX_API_URL")?, ..Configuration::default() };
    let mut request = PrepareRequest::new(var("PRODUCER_GROUP")?);
    request.topic = Some(Some(var("TOPIC")?));
    request.value = Some(Some("invoice".to_string()));
    let id = messages::prepare_half_message(&api, request, None, None)?.message_id.to_string();
    let end = EndRequest::new(Decision::DECISION_COMMIT);
    messages::end_half_message(&api, &id, end, Some("wait=30"), None)?;
    let got = messages::get_half_message(&api, &id, None)?;
    println!("{} {} {}", id, got.state, got.publication.unwrap().offset);
    Ok(())
}
