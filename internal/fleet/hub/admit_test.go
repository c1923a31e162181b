package hub

import (
	"context"
	"database/sql"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus/callout"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// slowHub returns a hub with one member, and a function that makes its store slow: for some seconds no statement gets a
// reply.
func slowHub(t *testing.T) (h *Hub, member nkeys.KeyPair, slow func()) {
	t.Helper()
	dir := t.TempDir()
	fleet, err := store.OpenFleet(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fleet.Close() })
	member, public := newKey(t)
	now := time.Now()
	err = fleet.AddEnrolment(t.Context(), store.Enrolment{Hash: "h", Uses: 1, Until: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Enrol(t.Context(), "h", store.Agent{ID: "anna", Name: "anna", NKey: public},
		netip.MustParseAddr("127.0.0.1"), now); err != nil {
		t.Fatal(err)
	}
	h = New(Config{Fleet: fleet, Orders: &Wire{}})
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "history.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return h, member, func() {
		tx, err := other.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		busy := make(chan struct{})
		go func() { // waits for the lock, and everything else waits for it
			defer close(busy)
			_ = fleet.Here(context.Background(), "anna", 0, 0, now)
		}()
		t.Cleanup(func() {
			_ = tx.Rollback()
			<-busy
		})
		time.Sleep(100 * time.Millisecond)
	}
}

func newKey(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// TestAdmit_SlowStore checks admission while the store does not reply: soon, and of members that the hub knows.
func TestAdmit_SlowStore(t *testing.T) {
	t.Parallel()
	h, member, slow := slowHub(t)
	public, err := member.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	_, stranger := newKey(t)
	from := netip.MustParseAddr("192.0.2.1")
	if err := h.refreshMembers(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	slow()
	began := time.Now()
	id, err := h.Admit(t.Context(), public, from)
	if took := time.Since(began); id != "anna" || err != nil || took < patience/2 || took > patience+time.Second {
		t.Errorf("a member: %q, %v after %v", id, err, took)
	}
	asking, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if id, err := h.Admit(asking, stranger, from); id != "" || err == nil {
		t.Errorf("a stranger was admitted as %q, %v", id, err)
	}
	h.door.set(nil) // the hub has read that it was removed
	if id, err := h.Admit(asking, public, from); id != "" || err == nil {
		t.Errorf("a removed member was admitted as %q, %v", id, err)
	}
}

// TestAdmit_WhileMembersAreRead admits an agent again and again while the hub reads the members.
func TestAdmit_WhileMembersAreRead(t *testing.T) {
	t.Parallel()
	h, member, _ := slowHub(t)
	public, err := member.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	from := netip.MustParseAddr("192.0.2.1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			if id, err := h.Admit(context.Background(), public, from); id != "anna" || err != nil {
				t.Errorf("%q, %v", id, err)
			}
		}
	}()
	for busy := true; busy; {
		if err := h.refreshMembers(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
			busy = false
		default:
		}
	}
	if err := h.refreshMembers(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if at := h.members["anna"].seenFrom; at != from {
		t.Errorf("it connects from %v", at)
	}
}

// TestAdmit_OwnNATSSlowStore connects an agent to a NATS server of the user's while the store does not reply. That
// server pings a client that waits for 2 s, and the client then gives up, so the hub must reply earlier.
func TestAdmit_OwnNATSSlowStore(t *testing.T) {
	t.Parallel()
	h, member, slow := slowHub(t)
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	issuerPublic, err := issuer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	key, public := newKey(t)
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := "listen: \"127.0.0.1:-1\"\n" + callout.Configuration(public, issuerPublic)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := natsd.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog = true
	options.NoSigs = true
	server, err := natsd.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	defer server.Shutdown()
	conn, err := nats.Connect(server.ClientURL(), nats.Nkey(public, key.Sign))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := callout.Serve(conn, issuer, "$G", h.Admit); err != nil {
		t.Fatal(err)
	}
	if err := h.refreshMembers(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	slow()
	connected, lost := make(chan struct{}, 1), make(chan error, 10)
	agent, err := bus.Dialer{Agent: "anna", Key: member, URLs: []string{server.ClientURL()},
		Connected: func() { connected <- struct{}{} }, Lost: func(err error) { lost <- err }}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	select {
	case <-connected:
	case <-time.After(time.Minute):
		t.Fatal("not connected")
	}
	if len(lost) > 0 {
		t.Error(<-lost)
	}
}
