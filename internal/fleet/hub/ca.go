package hub

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/store"
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

	// CertFile has the authority's certificate, for other programs.
	CertFile = "ca.pem"
	// KeyFile has the key that seals the authority's private key in the database.
	KeyFile      = "ca.key"
	sealKeyBytes = 32
)

// OpenCA reads the authority of a fleet from its database. It makes one at first use, or takes the one that an earlier
// version kept in the state directory. keyFile has the key that seals it; "" is KeyFile in the state directory.
func OpenCA(ctx context.Context, f *store.Fleet, dir, keyFile string, names []string) (*CA, error) {
	if keyFile == "" {
		keyFile = filepath.Join(dir, KeyFile)
	}
	stored, err := f.CA(ctx)
	if errors.Is(err, store.ErrNotFound) {
		stored, err = storeCA(ctx, f, filepath.Join(dir, CertFile), keyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("the hub's certificate authority: %w", err)
	}
	seal, err := sealOf(keyFile)
	if err != nil {
		return nil, fmt.Errorf("the key that seals the hub's certificate authority in the database: %w; copy %s of the "+
			"hub's first host there, or name it with --ca-key", err, KeyFile)
	}
	c, err := unsealed(stored, seal)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	c.names = names
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Cert.Raw})
	return c, atomicfile.WritePrivate(ctx, filepath.Join(dir, CertFile), cert)
}

// storeCA stores a new authority, or that of a file of an earlier version, and returns the stored one: another hub may
// have been first.
func storeCA(ctx context.Context, f *store.Fleet, earlier, keyFile string) (stored store.SealedCA, err error) {
	text, err := os.ReadFile(earlier)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newCA(time.Now())
	}
	if err != nil {
		return stored, err
	}
	c, err := parseCA(text)
	if err != nil {
		return stored, fmt.Errorf("%s: %w", earlier, err)
	}
	if err := newSealKey(keyFile); err != nil {
		return stored, err
	}
	seal, err := sealOf(keyFile)
	if err != nil {
		return stored, err
	}
	key, err := x509.MarshalECPrivateKey(c.key)
	if err != nil {
		return stored, err
	}
	nonce := make([]byte, seal.NonceSize())
	rand.Read(nonce)
	return f.KeepCA(ctx, store.SealedCA{Cert: c.Cert.Raw, Key: seal.Seal(nonce, nonce, key, c.Cert.Raw)})
}

// unsealed opens a stored authority.
func unsealed(stored store.SealedCA, seal cipher.AEAD) (*CA, error) {
	wrong := errors.New("not the key that sealed the certificate authority in the database")
	if len(stored.Key) < seal.NonceSize() {
		return nil, wrong
	}
	nonce := stored.Key[:seal.NonceSize()]
	key, err := seal.Open(nil, nonce, stored.Key[len(nonce):], stored.Cert)
	if err != nil {
		return nil, wrong
	}
	c := &CA{}
	c.Cert, err = x509.ParseCertificate(stored.Cert)
	if err == nil {
		c.key, err = x509.ParseECPrivateKey(key)
	}
	return c, err
}

// newSealKey makes a key file unless there is one.
func newSealKey(path string) error {
	var key [sealKeyBytes]byte
	rand.Read(key[:])
	err := atomicfile.WriteNew(path, []byte(hex.EncodeToString(key[:])+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// sealOf reads a key file.
func sealOf(path string) (cipher.AEAD, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != sealKeyBytes {
		return nil, fmt.Errorf("%s: not %d bytes in hexadecimal", path, sealKeyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// NewCA returns an authority that is kept nowhere.
func NewCA(names []string) (*CA, error) {
	text, err := newCA(time.Now())
	if err != nil {
		return nil, err
	}
	c, err := parseCA(text)
	if err == nil {
		c.names = names
	}
	return c, err
}

// parseCA parses an authority's certificate and private key.
func parseCA(text []byte) (c *CA, err error) {
	c = &CA{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "CERTIFICATE":
			c.Cert, err = x509.ParseCertificate(block.Bytes)
		case "EC PRIVATE KEY":
			c.key, err = x509.ParseECPrivateKey(block.Bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	if c.Cert == nil || c.key == nil {
		return nil, errors.New("no certificate with its private key: the database of another time has it; restore that, " +
			"or remove the file and let all hosts join again")
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
	// The subject differs from the authority's: with the same one other programs take the certificate for self-signed.
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "fullpipe hub's server"},
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
