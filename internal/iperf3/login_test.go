package iperf3

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestToken_HasIperf3Format(t *testing.T) {
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	der := must.Get(x509.MarshalPKIXPublicKey(&key.PublicKey))(t)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	login := Login{User: "mario", Password: "rossi", At: time.Unix(1795331783, 0)}
	const want = "user: mario\npwd:  rossi\nts:   1795331783"
	for _, pkcs1 := range []bool{false, true} {
		token := must.Get(Token(public, login, pkcs1))(t)
		sealed, err := base64.StdEncoding.DecodeString(token)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		if pkcs1 {
			//lint:ignore SA1019 iperf3 before 3.17 uses only this padding
			text, err = rsa.DecryptPKCS1v15(nil, key, sealed)
		} else {
			text, err = rsa.DecryptOAEP(sha1.New(), nil, key, sealed, nil)
		}
		if err != nil || string(text) != want {
			t.Errorf("PKCS#1 %v: %q, %v", pkcs1, text, err)
		}
	}
	for name, bad := range map[string]struct {
		key   []byte
		login Login
	}{
		"no PEM": {[]byte("x"), login}, "no key": {pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}),
			login},
		"white space": {public, Login{User: "a b"}},
	} {
		if token, err := Token(bad.key, bad.login, false); err == nil {
			t.Errorf("%s: %q", name, token)
		}
	}
}
