package agent

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// nearEnd is a near end that writes the native protocol itself (docs/protocol.md), so that it can leave at any stage.
type nearEnd struct {
	t       *testing.T
	address string
	control *tls.Conn
}

// enter opens a control connection, proves a run's key and reads hellos until this client's turn.
func enter(t *testing.T, address, key string) (*nearEnd, error) {
	t.Helper()
	k, err := probe.ParseKey(key)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Write(probe.Marker[:]); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return nil, err
	}
	control := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		ServerName: k.ID().String()})
	if err := control.Handshake(); err != nil {
		return nil, err
	}
	state := control.ConnectionState()
	bound, err := state.ExportKeyingMaterial("EXPORTER-fullpipe-1", nil, 32)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(control, make([]byte, sha256.Size)); err != nil {
		return nil, err
	}
	proof := hmac.New(sha256.New, k[:])
	proof.Write([]byte("fullpipe client"))
	proof.Write(bound)
	if _, err := control.Write(proof.Sum(nil)); err != nil {
		return nil, err
	}
	n := &nearEnd{t, address, control}
	for {
		var hello struct{ Busy bool }
		if err := n.read('H', &hello); err != nil || !hello.Busy {
			return n, err
		}
	}
}

func (n *nearEnd) write(kind byte, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(text)+1))
	_, err = n.control.Write(append(append(frame, kind), text...))
	return err
}

// read reads one message, and skips progress.
func (n *nearEnd) read(kind byte, into any) error {
	for {
		var head [5]byte
		if _, err := io.ReadFull(n.control, head[:]); err != nil {
			return err
		}
		text := make([]byte, binary.BigEndian.Uint32(head[:])-1)
		if _, err := io.ReadFull(n.control, text); err != nil {
			return err
		}
		switch head[4] {
		case kind:
			return json.Unmarshal(text, into)
		case 'P':
		default:
			return fmt.Errorf("message %q, want %q", head[4], kind)
		}
	}
}

// offer offers a transfer and returns the tokens of its data connections.
func (n *nearEnd) offer(spec transfer.Spec) ([]string, error) {
	var reply struct {
		Tokens []string
		Error  string
	}
	err := n.write('O', map[string]any{"version": 1, "spec": spec})
	if err == nil {
		err = n.read('A', &reply)
	}
	if err == nil && reply.Error != "" {
		err = errors.New(reply.Error)
	}
	return reply.Tokens, err
}

// stream opens a data connection.
func (n *nearEnd) stream(token string) net.Conn {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, token); err != nil {
		n.t.Fatal(err)
	}
	return conn
}

// leave ends the control connection without a word.
func (n *nearEnd) leave() { n.control.NetConn().Close() }

// push writes up to n bytes and returns how many the kernel took before the other end closed.
func push(conn net.Conn, n int64) (wrote int64) {
	buffer := make([]byte, 64<<10)
	for wrote < n {
		k, err := conn.Write(buffer[:min(int64(len(buffer)), n-wrote)])
		wrote += int64(k)
		if err != nil {
			break
		}
	}
	return wrote
}

// pull reads up to n bytes.
func pull(conn net.Conn, n int64) int64 {
	read, _ := io.CopyN(io.Discard, conn, n)
	return read
}
