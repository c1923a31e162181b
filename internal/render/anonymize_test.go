package render_test

import (
	"bytes"
	"maps"
	"regexp"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestAnonymizedDocumentsNameNobody: no address, no name of a host, a file or a line is
// left in any form, and the figures stay.
func TestAnonymizedDocumentsNameNobody(t *testing.T) {
	names := regexp.MustCompile(
		`198\.18\.\d|10\.\d+\.\d|far\.example|Line <7>|Line &lt;7|/captures/|pcap|iperf3 -c|vm"|lab-host`)
	for file, archive := range stored(t) {
		doc := must.Get(record.Decode(part(archive, "record.json"), part(archive, "samples.json")))(t)
		named := rendered(t, doc)
		anonymous, err := record.Anonymized(doc)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again := must.Get(record.Anonymized(doc))(t)
		got, gotAgain := rendered(t, anonymous), rendered(t, again)
		for form := range maps.Keys(got) {
			if left := names.FindString(string(got[form])); left != "" {
				t.Errorf("%s: its %s still says %q", file, form, left)
			}
			if bytes.Count(got[form], []byte("Mbit/s")) != bytes.Count(named[form], []byte("Mbit/s")) {
				t.Errorf("%s: its %s has other figures", file, form)
			}
			if !bytes.Equal(got[form], gotAgain[form]) {
				t.Errorf("%s: its %s is made anonymous in another way each time", file, form)
			}
		}
	}
}
