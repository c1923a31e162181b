package record

import "testing"

// FuzzAnonymized: whatever document can be read can be stored, and made anonymous, and is then one still.
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
			t.Errorf("made anonymous it cannot be stored: %v", err)
		}
	})
}
