package record

import "testing"

// FuzzAnonymized checks that every document that decodes can be anonymized and then encoded.
func FuzzAnonymized(f *testing.F) {
	f.Add([]byte(iperf3Text("connecting_to", 0)), []byte(nil))
	f.Add([]byte(`{"schema":"fullpipe/measure/v1","peer":"b","labels":{"a":"b"},"directions":[{"direction":"up"}]}`),
		[]byte(`{"series":[]}`))
	f.Add([]byte(`{"schema":"fullpipe/watch/v1","connections":[{"local":"10.0.0.1:2","directions":[null]}]}`), []byte(nil))
	f.Fuzz(func(t *testing.T, text, samples []byte) {
		doc, err := Decode(text, samples)
		if err != nil {
			return
		}
		made, err := Anonymized(doc)
		if err != nil {
			return
		}
		if _, err := Encode(made); err != nil {
			t.Errorf("the anonymized document cannot be encoded: %v", err)
		}
	})
}
