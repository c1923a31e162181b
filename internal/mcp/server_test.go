package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestMain(m *testing.M) { testenv.RunWithoutLeaks(m) }

// echo returns its arguments; wait ends with its context; broken has a fault.
func testServer() *Server {
	object := map[string]any{"type": "object"}
	return &Server{Name: "test", Version: "1", Instructions: "none", Tools: []Tool{
		{Name: "echo", Input: object, Call: func(_ context.Context, arguments json.RawMessage) (Result, error) {
			return Result{Text: []string{"fixed"}, Structured: map[string]any{"arguments": arguments}}, nil
		}},
		{Name: "wait", Input: object, Call: func(ctx context.Context, _ json.RawMessage) (Result, error) {
			<-ctx.Done()
			return Result{}, ctx.Err()
		}},
		{Name: "broken", Input: object, Call: func(context.Context, json.RawMessage) (Result, error) {
			return Result{}, errors.New("secret detail")
		}},
	}}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`

// TestServer_Responses sends one line after initialize and compares the response.
func TestServer_Responses(t *testing.T) {
	for _, test := range []struct{ name, send, want string }{
		{"ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"id is a string", `{"jsonrpc":"2.0","id":"a","method":"ping"}`, `{"jsonrpc":"2.0","id":"a","result":{}}`},
		{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"fixed","type":"text"}],"isError":false,` +
				`"structuredContent":{"arguments":{"a":1}}}}`},
		{"unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}`, `"code":-32602`},
		{"broken tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"broken"}}`,
			`{"code":-32603,"message":"the tool could not run"}`},
		{"wrong parameters", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`, `"code":-32602`},
		{"no parameters", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `"code":-32602`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, `"code":-32601`},
		{"not JSON", `{"jsonrpc"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"id":null,"error":{"code":-32600,`},
		{"other version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `"id":null,"error":{"code":-32600,`},
		{"id is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"id":null,"error":{"code":-32600,`},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"id":null,"error":{"code":-32600,`},
		{"id is long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 300) + `","method":"ping"}`, `"code":-32600,`},
		{"line is long", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", maxMessage) + `"}`, `"code":-32600,`},
		{"no protocol version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `"code":-32602`},
		{"unknown protocol version", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1"}}`,
			`"protocolVersion":"2025-11-25"`},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{}}`, ``},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{"empty line", ``, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t.Context())
				c.ask(initialize)
				got := c.ask(test.send)
				if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
					t.Errorf("%.200q gives %q, want %s", test.send, got, test.want)
				}
				c.in.Close()
				<-c.ended
			})
		})
	}
}

func TestServer_RequiresInitialize(t *testing.T) {
	for _, method := range []string{"tools/list", "tools/call"} {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t.Context())
			got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"echo"}}`)
			if !strings.Contains(got, "initialize comes first") {
				t.Errorf("%s before initialize: %s", method, got)
			}
			c.in.Close()
			<-c.ended
		})
	}
}

// client is one end of a session in a synctest bubble.
type client struct {
	in      *io.PipeWriter
	replies chan string
	ended   chan error
}

func connect(ctx context.Context) *client {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	c := &client{send, make(chan string, 100), make(chan error, 1)}
	go func() {
		c.ended <- testServer().Serve(ctx, in, out)
		in.Close()
		out.Close()
	}()
	go func() {
		for lines := bufio.NewScanner(receive); lines.Scan(); {
			c.replies <- lines.Text()
		}
		close(c.replies)
	}()
	return c
}

// ask sends a line and returns the response, "" for none.
func (c *client) ask(text string) string {
	c.send("%s", text)
	synctest.Wait()
	select {
	case reply := <-c.replies:
		return reply
	default:
		return ""
	}
}

func (c *client) send(format string, args ...any) { fmt.Fprintf(c.in, format+"\n", args...) }

func callOf(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, tool)
}

// TestServer_EndsWhateverRuns checks that running calls end with the input, with the context and with the output.
func TestServer_EndsWhateverRuns(t *testing.T) {
	for name, end := range map[string]func(c *client, stop func()){
		"input": func(c *client, _ func()) { c.in.Close() },
		"context": func(c *client, stop func()) {
			stop()
			synctest.Wait()
			c.in.Close() // a read of standard input cannot be broken off
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				c := connect(ctx)
				c.ask(initialize)
				for i := range maxCalls {
					c.send("%s", callOf(i+1, "wait"))
				}
				synctest.Wait()
				end(c, stop)
				if err := <-c.ended; err != nil {
					t.Error(err)
				}
				for reply := range c.replies {
					t.Errorf("a call that was ended has the response %s", reply)
				}
			})
		})
	}
}

// TestServer_CancelsAndBoundsCalls checks cancellation by id, the limit of calls, and reuse of an id.
func TestServer_CancelsAndBoundsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t.Context())
		c.ask(initialize)
		for i := range maxCalls {
			c.send("%s", callOf(i+1, "wait"))
		}
		c.send("%s", callOf(2, "echo"))
		if got := <-c.replies; !strings.Contains(got, "a call with this id is running") {
			t.Error(got)
		}
		c.send("%s", callOf(9, "echo"))
		if got := <-c.replies; !strings.Contains(got, fmt.Sprint(codeBusy)) {
			t.Error(got)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`)
		synctest.Wait()
		c.send("%s", callOf(2, "echo"))
		if got := <-c.replies; !strings.Contains(got, `"id":2,"result"`) {
			t.Error(got)
		}
		c.in.Close()
		<-c.ended
	})
}

// TestServer_EndsWhenNobodyReads checks that a failed write ends the session.
func TestServer_EndsWhenNobodyReads(t *testing.T) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	receive.Close()
	go send.Write([]byte(initialize + "\n"))
	done := make(chan error, 1)
	go func() { done <- testServer().Serve(t.Context(), in, out) }()
	select {
	case err := <-done:
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it serves on")
	}
	send.Close()
}

// FuzzServer sends anything. Each line that is written must be a JSON-RPC response without text of the client but for
// the id and the arguments that echo returns, and only listed tools are called.
func FuzzServer(f *testing.F) {
	f.Add([]byte(initialize + "\n" + callOf(1, "echo") + "\n"))
	f.Add([]byte(initialize + "\n" + callOf(1, "broken") + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled"}`))
	f.Add([]byte("[]\n{}\nnull\n\"\"\n{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"ping\"}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var out strings.Builder
		must.Do(t, testServer().Serve(t.Context(), strings.NewReader(string(text)), &out))
		for l := range strings.Lines(out.String()) {
			var r struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Result  json.RawMessage `json:"result"`
				Error   *rpcError       `json:"error"`
			}
			if err := json.Unmarshal([]byte(l), &r); err != nil || r.Version != "2.0" || len(r.ID) == 0 ||
				(r.Result == nil) == (r.Error == nil) {
				t.Errorf("%v: %q", err, l)
			}
		}
	})
}
