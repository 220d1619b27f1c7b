package outbox

import (
	"bytes"
	"encoding/json"
	"unicode"
	"unicode/utf8"
)

// Decision is what became of a local transaction. Unknown decides nothing: the service asks again.
type Decision string

// The decisions of ends and of checks.
const (
	Commit   Decision = "COMMIT"
	Rollback Decision = "ROLLBACK"
	Unknown  Decision = "UNKNOWN"
)

// Message becomes a record. A nil Key is no key, a nil Value a tombstone. Without TransactionID it gets a random one.
type Message struct {
	Topic                string            `json:"topic,omitempty"`
	Key                  []byte            `json:"-"`
	Value                []byte            `json:"-"`
	Headers              map[string]Header `json:"headers,omitempty"`
	ContentType          string            `json:"content_type,omitempty"`
	TransactionID        string            `json:"transaction_id,omitempty"`
	Partition            *int32            `json:"partition,omitempty"`
	CheckImmunitySeconds int               `json:"check_immunity_seconds,omitempty"`
	Tags                 []string          `json:"tags,omitempty"`
	// Followers have the decision, the TransactionID and the CheckImmunitySeconds of this message.
	Followers []Message `json:"-"`
}

// Header is the value of a record's header; nil is a null.
type Header []byte

// MarshalJSON returns text as a string, other bytes as base64.
func (h Header) MarshalJSON() ([]byte, error) {
	switch {
	case h == nil:
		return []byte("null"), nil
	case utf8.Valid(h) && !bytes.ContainsFunc(h, unicode.IsControl):
		return json.Marshal(string(h))
	}
	return json.Marshal(map[string][]byte{"base64": h})
}

// body returns the JSON of a prepare.
func (m Message) body(group string) ([]byte, error) {
	if len(m.Followers) == 0 {
		return json.Marshal(struct {
			Group string `json:"producer_group"`
			content
		}{group, contentOf(m)})
	}
	said := Message{TransactionID: m.TransactionID, CheckImmunitySeconds: m.CheckImmunitySeconds}
	var messages []content
	for _, each := range append([]Message{m}, m.Followers...) {
		each.TransactionID, each.CheckImmunitySeconds = "", 0
		messages = append(messages, contentOf(each))
	}
	return json.Marshal(struct {
		Group string `json:"producer_group"`
		Message
		Messages []content `json:"messages"`
	}{group, said, messages})
}

// content is the JSON of a message. A null is absent there, except that a null value alone is a tombstone.
type content struct {
	Message
	Key         *string `json:"key"`
	KeyBase64   []byte  `json:"key_base64"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64"`
}

func contentOf(m Message) content {
	members := content{Message: m}
	members.Key, members.KeyBase64 = textOrBytes(m.Key)
	members.Value, members.ValueBase64 = textOrBytes(m.Value)
	return members
}

func textOrBytes(given []byte) (*string, []byte) {
	if given == nil || !utf8.Valid(given) {
		return nil, given
	}
	text := string(given)
	return &text, nil
}
