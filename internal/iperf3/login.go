package iperf3

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Login is a user, a password and the time of the request. A token is valid for seconds.
type Login struct {
	User, Password string
	At             time.Time
}

// Token encrypts a login with a public key in PEM: with OAEP and SHA-1 as iperf3 since 3.17, or with PKCS#1 v1.5
// as before. Authenticator decrypts it.
func Token(publicKey []byte, l Login, pkcs1 bool) (string, error) {
	if strings.ContainsAny(l.User+l.Password, " \t\r\n") {
		return "", errors.New("iperf3 does not support white space in a user or password")
	}
	block, _ := pem.Decode(publicKey)
	if block == nil {
		return "", errors.New("not a key in PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("not a public key: %w", err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return "", errors.New("not an RSA key")
	}
	text := fmt.Appendf(nil, "user: %s\npwd:  %s\nts:   %d", l.User, l.Password, l.At.Unix())
	var sealed []byte
	if pkcs1 {
		//lint:ignore SA1019 servers before iperf3 3.17 accept nothing else; encryption has no padding oracle
		sealed, err = rsa.EncryptPKCS1v15(rand.Reader, key, text)
	} else {
		sealed, err = rsa.EncryptOAEP(sha1.New(), rand.Reader, key, text, nil)
	}
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}
