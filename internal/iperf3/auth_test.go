package iperf3

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// keyPair returns a key and its public half in PEM.
func keyPair(t testing.TB) (*rsa.PrivateKey, []byte) {
	t.Helper()
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	public := must.Get(x509.MarshalPKIXPublicKey(&key.PublicKey))(t)
	return key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
}

func usersFile(pairs ...string) func() ([]byte, error) {
	text := "# users\n\nnobody\r\n"
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf("%s,%x\r\n", pairs[i], sha256.Sum256([]byte("{"+pairs[i]+"}"+pairs[i+1])))
	}
	return func() ([]byte, error) { return []byte(text), nil }
}

func TestAuthenticator_Verify(t *testing.T) {
	key, public := keyPair(t)
	_, other := keyPair(t)
	now := time.Unix(1795359483, 0)
	for _, pkcs1 := range []bool{false, true} {
		g := &Authenticator{Key: key, PKCS1: pkcs1, Users: usersFile("mario", "rossi", "peach", "verdi")}
		for _, c := range []struct {
			name     string
			public   []byte
			login    Login
			pkcs1    bool
			admitted bool
		}{
			{"right", public, Login{"mario", "rossi", now}, pkcs1, true},
			{"the other user", public, Login{"peach", "verdi", now}, pkcs1, true},
			{"another's password", public, Login{"mario", "verdi", now}, pkcs1, false},
			{"no such user", public, Login{"luigi", "rossi", now}, pkcs1, false},
			{"nine seconds late", public, Login{"mario", "rossi", now.Add(-9 * time.Second)}, pkcs1, true},
			{"eleven seconds late", public, Login{"mario", "rossi", now.Add(-11 * time.Second)}, pkcs1, false},
			{"eleven seconds early", public, Login{"mario", "rossi", now.Add(11 * time.Second)}, pkcs1, false},
			{"another key", other, Login{"mario", "rossi", now}, pkcs1, false},
			{"the other padding", public, Login{"mario", "rossi", now}, !pkcs1, false},
		} {
			token := must.Get(Token(c.public, c.login, c.pkcs1))(t)
			if err := g.verify(token, now); (err == nil) != c.admitted || err != nil && !errors.Is(err, ErrNotAuthorized) {
				t.Errorf("PKCS#1 %v, %s: %v", pkcs1, c.name, err)
			}
		}
		for _, token := range []string{"", "=", "%%%%", "AAAA", strings.Repeat("A", 4096),
			base64.StdEncoding.EncodeToString(make([]byte, 256))} {
			if err := g.verify(token, now); !errors.Is(err, ErrNotAuthorized) {
				t.Errorf("the token %.20q: %v", token, err)
			}
		}
	}
}

func TestPrivateKey(t *testing.T) {
	key, public := keyPair(t)
	pkcs8 := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	for _, c := range []struct {
		name string
		text []byte
		good bool
	}{
		{"PKCS#8", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), true},
		{"PKCS#1", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), true},
		{"a public key", public, false},
		{"with a pass phrase", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: pkcs8}), false},
		{"nothing", nil, false},
	} {
		got, err := PrivateKey(c.text)
		if (err == nil) != c.good || c.good && !got.Equal(key) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestParseUsers(t *testing.T) {
	text, _ := usersFile("mario", "rossi")()
	users, err := ParseUsers(text)
	if err != nil || len(users) != 1 || users[0].Name != "mario" {
		t.Errorf("%v, %v", users, err)
	}
	for _, bad := range []string{"mario,xyz", "a,\n", "mario," + strings.Repeat("0", 63)} {
		if _, err := ParseUsers([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParseUsers(f *testing.F) {
	f.Add([]byte("mario," + strings.Repeat("0a", 32) + ",x\n#a,b\n\n,"))
	f.Fuzz(func(t *testing.T, text []byte) { ParseUsers(text) })
}

func FuzzGate(f *testing.F) {
	key, public := keyPair(f)
	token, _ := Token(public, Login{"mario", "rossi", time.Unix(1, 0)}, false)
	f.Add(token)
	f.Add("AAAA")
	g := &Authenticator{Key: key, Users: usersFile("mario", "rossi")}
	f.Fuzz(func(t *testing.T, token string) {
		if g.verify(token, time.Now()) == nil {
			t.Errorf("%q opened", token)
		}
	})
}

// TestAuthenticator_RefusesAllTokensAlike checks that each invalid token gets the same reply after the same time.
func TestAuthenticator_RefusesAllTokensAlike(t *testing.T) {
	key, public := keyPair(t)
	token := func(user, password string, at time.Time, pkcs1 bool) string {
		text := must.Get(Token(public, Login{user, password, at}, pkcs1))(t)
		return text
	}
	for name, bad := range map[string]func(now time.Time) string{
		"none":      func(time.Time) string { return "" },
		"no base64": func(time.Time) string { return "%%%%" },
		"padding":   func(now time.Time) string { return token("mario", "rossi", now, true) },
		"user":      func(now time.Time) string { return token("luigi", "rossi", now, false) },
		"password":  func(now time.Time) string { return token("mario", "verdi", now, false) },
		"time":      func(now time.Time) string { return token("mario", "rossi", now.Add(-time.Minute), false) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{Auth: &Authenticator{Key: key, Users: usersFile("mario", "rossi")}}
			began := time.Now()
			_, err := opened(t, s, fmt.Sprintf(`{"tcp":true,"time":1,"authtoken":%q}`, bad(began)))
			var refused *RemoteError
			if took := time.Since(began); took != refusalDelay || !errors.As(err, &refused) ||
				*refused != (RemoteError{Code: CodeAuth}) {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}

func TestAuthenticator_AcceptsAtOnce(t *testing.T) {
	key, public := keyPair(t)
	token := must.Get(Token(public, Login{"mario", "rossi", time.Now()}, false))(t)
	peer := NewPeer(serve(t, &Server{Auth: &Authenticator{Key: key, Users: usersFile("mario", "rossi")}}))
	defer peer.Close()
	account, err := peer.RunCommand(t.Context(), Command{Params: Params{Num: 100000, Len: 1000, Streams: 1, Auth: token}})
	if err != nil || account.Far.Streams[0].Bytes != 100000 || account.Legs[0].TCP.Spec.Direction != transfer.Up {
		t.Errorf("%+v, %v", account, err)
	}
}

// Tokens that openssl(1) encrypted from one login with both paddings: openssl pkeyutl -encrypt -pubin -inkey
// PUBLIC -pkeyopt rsa_padding_mode:oaep (or pkcs1), in base64.
func TestAuthenticator_DecryptsOpenSSLTokens(t *testing.T) {
	read := func(name string) []byte {
		text := must.Get(os.ReadFile(filepath.Join("testdata", "login", name)))(t)
		return text
	}
	key := must.Get(PrivateKey(read("key.pem")))(t)
	for name, pkcs1 := range map[string]bool{"oaep.token": false, "pkcs1.token": true} {
		g := &Authenticator{Key: key, PKCS1: pkcs1, Users: usersFile("mario", "rossi")}
		if err := g.verify(string(read(name)), time.Unix(1795359483, 0)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
