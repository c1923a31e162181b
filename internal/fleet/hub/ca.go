package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
)

// CA is the hub's own certificate authority. Agents pin its public key.
type CA struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu    sync.Mutex
	leaf  *tls.Certificate
	names []string
}

const (
	caYears    = 10
	leafDays   = 90
	renewShare = 3 // a certificate is renewed when 1/renewShare of its life is left
)

// OpenCA reads the authority of a state directory. It makes one at first use.
func OpenCA(ctx context.Context, dir string, names []string) (*CA, error) {
	path := filepath.Join(dir, "ca.pem")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newCA(time.Now())
		if err == nil {
			err = atomicfile.WriteNew(path, text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the hub's certificate authority: %w", err)
	}
	c := &CA{names: names}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "CERTIFICATE":
			c.Cert, err = x509.ParseCertificate(block.Bytes)
		case "EC PRIVATE KEY":
			c.key, err = x509.ParseECPrivateKey(block.Bytes)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if c.Cert == nil || c.key == nil {
		return nil, fmt.Errorf("%s: no certificate and key in it", path)
	}
	return c, nil
}

// newCA returns a new authority as PEM.
func newCA(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "fullpipe hub"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(caYears, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})...), nil
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:])
	return new(big.Int).SetBytes(b[:])
}

// TLS returns the hub's TLS configuration. Its certificate renews itself.
func (c *CA) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.certificate(time.Now()) }}
}

// certificate returns a valid certificate for the hub's names, followed by the authority's, which agents pin.
func (c *CA) certificate(now time.Time) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaf != nil && c.leaf.Leaf.NotAfter.Sub(now) > leafDays*24*time.Hour/renewShare {
		return c.leaf, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "fullpipe hub"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, leafDays), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range c.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.Cert, &key.PublicKey, c.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c.leaf = &tls.Certificate{Certificate: [][]byte{der, c.Cert.Raw}, PrivateKey: key, Leaf: leaf}
	return c.leaf, nil
}
