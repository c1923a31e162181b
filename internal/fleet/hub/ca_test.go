package hub

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// TestCA_VerifiesAsOtherProgramsDo checks the hub's certificates by the rules of a program that has ca.pem only.
func TestCA_VerifiesAsOtherProgramsDo(t *testing.T) {
	dir := t.TempDir()
	f, err := store.OpenFleet(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ca, err := OpenCA(t.Context(), f, dir, "", []string{"hub.example.net", "192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, CertFile))
	if err != nil || strings.Contains(string(text), "PRIVATE") {
		t.Fatalf("%s has the private key, or %v", CertFile, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatal("no certificate in the file")
	}
	pair, err := ca.certificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf := pair.Leaf
	for _, name := range []string{"hub.example.net", "192.0.2.7"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	switch {
	case string(leaf.RawSubject) == string(ca.Cert.RawSubject):
		t.Error("authority and server have one subject")
	case len(leaf.AuthorityKeyId) == 0 || string(leaf.AuthorityKeyId) != string(ca.Cert.SubjectKeyId):
		t.Errorf("the server's authority key is %x, the authority's key %x", leaf.AuthorityKeyId, ca.Cert.SubjectKeyId)
	}
}

// TestCA_MovesWithItsDatabase checks that a copy of the database and the key file are the same authority on another
// host, and that one without the other is none.
func TestCA_MovesWithItsDatabase(t *testing.T) {
	dir := t.TempDir()
	f, err := store.OpenFleet(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	earlier, err := newCA(time.Now()) // of a version that kept it in a file
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, CertFile), earlier, 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := OpenCA(t.Context(), f, dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	was, _ := pem.Decode(earlier)
	if string(first.Cert.Raw) != string(was.Bytes) {
		t.Error("the authority of the file is not taken")
	}
	key, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	database, err := os.ReadFile(filepath.Join(dir, "history.db"))
	if err != nil || strings.Contains(string(database), string(key)) {
		t.Fatalf("the key is in the database, or %v", err)
	}
	other := t.TempDir()
	if err := f.Backup(t.Context(), filepath.Join(other, "history.db")); err != nil {
		t.Fatal(err)
	}
	moved, err := store.OpenFleet(t.Context(), other, "")
	if err != nil {
		t.Fatal(err)
	}
	defer moved.Close()
	for _, c := range []struct{ name, key, want string }{
		{"no key file", "", "copy ca.key of the hub's first host there"},
		{"another fleet's key", strings.Repeat("07", sealKeyBytes), "not the key that sealed"},
		{"garbage", "hello", "not 32 bytes in hexadecimal"},
		{"its key", string(key), ""},
	} {
		if c.key != "" {
			if err := os.WriteFile(filepath.Join(other, KeyFile), []byte(c.key), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		second, err := OpenCA(t.Context(), moved, other, "", nil)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case c.want == "" && (err != nil || bus.Pin(second.Cert) != bus.Pin(first.Cert)):
			t.Errorf("%s: another authority, %v", c.name, err)
		case c.want == "":
			pair, err := second.certificate(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			config := bus.PinnedTLS(bus.Pin(first.Cert))
			chain := []*x509.Certificate{pair.Leaf, second.Cert}
			if err := config.VerifyConnection(tls.ConnectionState{PeerCertificates: chain}); err != nil {
				t.Errorf("an agent refuses the hub on the other host: %v", err)
			}
		}
	}
}
