package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// ErrWrongKey reports that the two ends have different keys.
var ErrWrongKey = errors.New("the other end has another key")

// Roles of the two proofs. A proof is valid for one role only.
const (
	serverRole = "fullpipe server"
	clientRole = "fullpipe client"
	exporter   = "EXPORTER-fullpipe-1"
)

// keyExchanges excludes post-quantum key exchanges: their kilobytes take seconds on a modem, and nothing here
// needs long-term secrecy.
var keyExchanges = []tls.CurveID{tls.X25519}

// NewCertificate returns a self-signed certificate for one server. It proves nothing: the proofs of the key are
// bound to the TLS session by its exporter (RFC 5705, RFC 8446 section 7.5).
func NewCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-24 * time.Hour),
		NotAfter: now.AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// SecureServer is the server's handshake: TLS, then both proofs, the server's first.
func SecureServer(ctx context.Context, conn net.Conn, cert tls.Certificate, key Key) (*tls.Conn, error) {
	return secureServer(ctx, conn, cert, func(string) Key { return key })
}

// secureServer chooses the key by the ID that the client sends as TLS server name.
func secureServer(ctx context.Context, conn net.Conn, cert tls.Certificate, choose func(id string) Key) (*tls.Conn,
	error) {
	t := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13,
		SessionTicketsDisabled: true,
		CurvePreferences:       keyExchanges})
	return prove(ctx, t, choose, serverRole, clientRole)
}

func secureClient(ctx context.Context, conn net.Conn, key Key) (*tls.Conn, error) {
	t := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		CurvePreferences: keyExchanges,
		ServerName:       key.ID().String()})
	return prove(ctx, t, func(string) Key { return key }, clientRole, serverRole)
}

func prove(ctx context.Context, t *tls.Conn, choose func(id string) Key, own, other string) (*tls.Conn, error) {
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	state := t.ConnectionState()
	key := choose(state.ServerName)
	bound, err := state.ExportKeyingMaterial(exporter, nil, 32)
	if err != nil {
		return nil, err
	}
	proof := func(role string) []byte {
		mac := hmac.New(sha256.New, key[:])
		mac.Write([]byte(role))
		mac.Write(bound)
		return mac.Sum(nil)
	}
	// The server sends its proof first, so a client learns of a wrong server before it reveals anything.
	if own == serverRole {
		if _, err := t.Write(proof(own)); err != nil {
			return nil, err
		}
	}
	theirs := make([]byte, sha256.Size)
	if _, err := io.ReadFull(t, theirs); err != nil {
		if own == serverRole && errors.Is(err, io.EOF) {
			return nil, ErrWrongKey // the client closed the connection on our proof
		}
		return nil, err
	}
	if !hmac.Equal(theirs, proof(other)) {
		return nil, ErrWrongKey
	}
	if own == clientRole {
		if _, err := t.Write(proof(own)); err != nil {
			return nil, err
		}
	}
	return t, nil
}
