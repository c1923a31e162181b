package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func message(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// TestMessageLimiter_HostileServers: the client stops by itself, with little memory. Each server sends for as long
// as the client reads; no timeout ends it.
func TestMessageLimiter_HostileServers(t *testing.T) {
	ready := bytes.Join([][]byte{message('R', "\x00\x00\x00\x00"), message('S', "client_encoding\x00UTF8\x00"),
		message('S', "standard_conforming_strings\x00on\x00"), message('K', "\x00\x00\x00\x01\x00\x00\x00\x02"),
		message('Z', "I")}, nil)
	forever := func(one []byte) func(net.Conn) {
		return func(c net.Conn) {
			many := bytes.Repeat(one, 1+1<<16/len(one))
			for {
				if _, err := c.Write(many); err != nil {
					return
				}
			}
		}
	}
	asked := func(first []byte, then func(net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			c.Write(ready)
			c.Read(make([]byte, 4096))
			c.Write(first)
			then(c)
		}
	}
	row := message('T', "\x00\x01v\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x00\x04\xff\xff\xff\xff\x00\x00")
	for name, says := range map[string]func(net.Conn){
		"a message of a gigabyte": func(c net.Conn) { c.Write([]byte("R\x3f\xff\xff\xff")); forever([]byte("\x00"))(c) },
		"an answer of a gigabyte": asked([]byte("D\x3f\xff\xff\xff"), forever([]byte("\x00"))),
		"endless settings":        forever(message('S', "a\x00"+strings.Repeat("b", 1000)+"\x00")),
		"endless notices":         forever(message('N', "SNOTICE\x00M"+strings.Repeat("b", 1000)+"\x00\x00")),
		"endless notifies":        asked(nil, forever(message('A', "\x00\x00\x00\x01c\x00"+strings.Repeat("b", 999)+"\x00"))),
		"endless rows":            asked(row, forever(message('D', "\x00\x01\x00\x00\x03\xe8"+strings.Repeat("1", 1000)))),
		"a hash for a minute": func(c net.Conn) {
			c.Write(message('R', "\x00\x00\x00\x0aSCRAM-SHA-256\x00\x00"))
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			_, nonce, _ := bytes.Cut(b[:n], []byte("r="))
			c.Write(message('R', "\x00\x00\x00\x0br="+string(nonce)+"zz,s=QUFBQUFBQUE=,i=9999999"))
			c.Read(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			over, end := context.WithCancel(t.Context()) // pgx reads for another 15 s after an error
			defer end()
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						defer context.AfterFunc(over, func() { c.Close() })()
						var head [4]byte
						io.ReadFull(c, head[:])
						io.ReadFull(c, make([]byte, min(binary.BigEndian.Uint32(head[:])-4, 1<<16)))
						says(c)
					}()
				}
			}()
			s, err := OpenAt(t.Context(), t.TempDir(), "postgres://u:p@"+l.Addr().String()+
				"/d?sslmode=disable&connect_timeout=3600")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = s.List(t.Context(), Filter{})
			end()
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("no error")
			}
			if grown := int64(after.Sys) - int64(before.Sys); grown > 256<<20 {
				t.Errorf("%d MiB more", grown>>20)
			}
		})
	}
}

// TestMessageLimiter_Fragments: messages give the same result however they are split.
func TestMessageLimiter_Fragments(t *testing.T) {
	text := bytes.Join([][]byte{message('R', "\x00\x00\x00\x0br=a,s=b,i=4096"), message('S', "a\x00b\x00"),
		message('Z', "I"),
		message('D', strings.Repeat("x", 70000)), message('C', "")}, nil)
	for _, in := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)),
		iotest.HalfReader(bytes.NewReader(text))} {
		if got, err := io.ReadAll(&messageLimiter{in: in}); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
	}
	for _, bad := range []string{"R\x00\x00\x00\x03", "R\x00\x00\x20\x00", "D\xff\xff\xff\xff",
		string(message('R', "\x00\x00\x00\x0br=a,s=b,i=1000001")), string(message('R', "\x00\x00\x00\x0bi=-"))} {
		if _, err := io.ReadAll(&messageLimiter{in: iotest.OneByteReader(strings.NewReader(bad))}); err == nil {
			t.Errorf("%q is let through", bad)
		}
	}
}
