package callout

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestServe_AdmitsMembers runs a NATS server as a user configures it, and lets a member and others connect.
func TestServe_AdmitsMembers(t *testing.T) {
	issuer := must.Get(nkeys.CreateAccount())(t)
	public := must.Get(issuer.PublicKey())(t)
	hubKey := must.Get(nkeys.CreateUser())(t)
	hubPublic := must.Get(hubKey.PublicKey())(t)
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := "listen: \"127.0.0.1:-1\"\n" + Configuration(hubPublic, public)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	options := must.Get(natsd.ProcessConfigFile(file))(t)
	options.NoLog = true
	options.NoSigs = true
	server := must.Get(natsd.NewServer(options))(t)
	server.Start()
	defer server.Shutdown()
	if !server.ReadyForConnections(10 * time.Second) {
		t.Fatal("not ready")
	}
	hub := must.Get(nats.Connect(server.ClientURL(), nats.Nkey(hubPublic, hubKey.Sign)))(t)
	defer hub.Close()
	member := must.Get(nkeys.CreateUser())(t)
	memberKey, err := member.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(hub, issuer, "$G", func(_ context.Context, nkey string, from netip.Addr) (string, error) {
		if nkey != memberKey || !from.IsLoopback() {
			return "", errors.New("unknown")
		}
		return "anna", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, hub.Flush())
	denied := make(chan error, 4)
	conn := must.Get(nats.Connect(server.ClientURL(), nats.Nkey(memberKey, member.Sign),
		nats.CustomInboxPrefix(bus.Inbox("anna")),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })))(t)
	defer conn.Close()
	must.Get(hub.Subscribe(bus.AnyUp("echo"), func(m *nats.Msg) { _ = m.Respond(m.Data) }))(t)
	must.Do(t, hub.Flush())
	if reply, err := conn.Request(bus.Up("anna", "echo"), []byte("x"), 10*time.Second); err != nil ||
		string(reply.Data) != "x" {
		t.Errorf("its own subject: %v", err)
	}
	must.Do(t, conn.Publish(bus.Up("bert", "result"), nil))
	select {
	case err := <-denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("another's subject was not denied")
	}
	stranger := must.Get(nkeys.CreateUser())(t)
	strangerKey := must.Get(stranger.PublicKey())(t)
	for name, option := range map[string]nats.Option{
		"unknown key":                  nats.Nkey(strangerKey, stranger.Sign),
		"another's key, own signature": nats.Nkey(memberKey, stranger.Sign),
		"a password":                   nats.UserInfo("hub", "guess"),
	} {
		if conn, err := nats.Connect(server.ClientURL(), option, nats.MaxReconnects(0)); err == nil {
			conn.Close()
			t.Errorf("%s was admitted", name)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	issuer := must.Get(nkeys.CreateAccount())(f)
	f.Add([]byte("eyJ0eXAiOiJKV1QifQ.e30.AA"))
	f.Fuzz(func(t *testing.T, question []byte) {
		reply, err := answer(question, issuer, "$G", func(context.Context, string, netip.Addr) (string, error) {
			return "anna", nil
		})
		if err == nil && len(question) < 100 {
			t.Errorf("%q was admitted: %s", question, reply)
		}
	})
}
