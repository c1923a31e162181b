package probe

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// said returns a proof for any role and session.
func said(t *testing.T, c *tls.Conn, key Key, role string) []byte {
	t.Helper()
	state := c.ConnectionState()
	bound := must.Get(state.ExportKeyingMaterial(exporter, nil, 32))(t)
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(role))
	mac.Write(bound)
	return mac.Sum(nil)
}

// plainTLS is the client's TLS handshake without proofs.
func plainTLS(t *testing.T, conn net.Conn) *tls.Conn {
	t.Helper()
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		CurvePreferences: keyExchanges})
	must.Do(t, c.Handshake())
	return c
}

func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	a, b = net.Pipe()
	for _, c := range []net.Conn{a, b} {
		c.SetDeadline(time.Now().Add(20 * time.Second)) // ends a stalled test
		t.Cleanup(func() { c.Close() })
	}
	return a, b
}

// The client sends its proof only after a valid server's proof. A server without the key gets nothing.
func TestClient_RejectsReflectedProofs(t *testing.T) {
	key := NewKey()
	cert := must.Get(NewCertificate())(t)
	for name, first := range map[string]func(*tls.Conn) []byte{
		"nothing of its own":      func(*tls.Conn) []byte { return make([]byte, sha256.Size) },
		"the client's own proof":  func(c *tls.Conn) []byte { return said(t, c, key, clientRole) },
		"another key's":           func(c *tls.Conn) []byte { return said(t, c, NewKey(), serverRole) },
		"of a session in between": nil,
	} {
		near, far := pair(t)
		given := make(chan int, 1)
		go func() {
			c := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
			if c.Handshake() != nil {
				given <- -1
				return
			}
			if first != nil {
				c.Write(first(c))
			} else { // a man in the middle that forwards the honest server's proof
				out, honest := pair(t)
				go SecureServer(t.Context(), honest, cert, key)
				proof := make([]byte, sha256.Size)
				if _, err := io.ReadFull(plainTLS(t, out), proof); err == nil {
					c.Write(proof)
				}
			}
			n, _ := io.ReadFull(c, make([]byte, sha256.Size))
			given <- n
		}()
		_, err := secureClient(t.Context(), near, key)
		near.Close()
		if n := <-given; n != 0 || !errors.Is(err, ErrWrongKey) {
			t.Errorf("%s: the client gives %d bytes, %v", name, n, err)
		}
	}
}

// The server rejects its own proof, of this session or another.
func TestServer_RejectsReflectedProofs(t *testing.T) {
	key := NewKey()
	cert := must.Get(NewCertificate())(t)
	session := func() (c *tls.Conn, proof []byte, admitted <-chan error) {
		near, far := pair(t)
		result := make(chan error, 1)
		go func() {
			_, err := SecureServer(t.Context(), far, cert, key)
			result <- err
		}()
		c, proof = plainTLS(t, near), make([]byte, sha256.Size)
		must.Get(io.ReadFull(c, proof))(t)
		return c, proof, result
	}
	_, other, _ := session()
	for name, answer := range map[string]func(*tls.Conn, []byte) []byte{
		"its own":            func(_ *tls.Conn, proof []byte) []byte { return proof },
		"another session's":  func(*tls.Conn, []byte) []byte { return other },
		"the server's role":  func(c *tls.Conn, _ []byte) []byte { return said(t, c, key, serverRole) },
		"another key's":      func(c *tls.Conn, _ []byte) []byte { return said(t, c, NewKey(), clientRole) },
		"zeros":              func(*tls.Conn, []byte) []byte { return make([]byte, sha256.Size) },
		"the client's proof": func(c *tls.Conn, _ []byte) []byte { return said(t, c, key, clientRole) }, // control case
	} {
		c, proof, admitted := session()
		must.Get(c.Write(answer(c, proof)))(t)
		if err := <-admitted; (err == nil) != (name == "the client's proof") || err != nil && !errors.Is(err, ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
