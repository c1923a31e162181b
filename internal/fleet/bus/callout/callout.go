// Package callout admits agents to a NATS server of the user's: the server asks the hub at each connect.
package callout

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// subject is where a NATS server asks.
const subject = "$SYS.REQ.USER.AUTH"

// Admit returns the ID of the agent with a public key, which connects from an address.
type Admit func(ctx context.Context, nkey string, from netip.Addr) (agent string, err error)

const (
	admitTime = 5 * time.Second
	// sessionTime is how long a connection may last without a new question. A removed agent is cut off by then.
	sessionTime = 10 * time.Minute
)

// Configuration returns what a NATS server's configuration file needs: the hub's public key, which also makes the
// server send nonces, and the public key of the issuer.
func Configuration(hub, issuer string) string {
	return fmt.Sprintf(`authorization {
  users: [ { nkey: %s } ]
  auth_callout { issuer: %s, auth_users: [ %s ] }
}
`, hub, issuer, hub)
}

// Serve replies to a server's questions until the connection closes. account is the account of the fleet's
// connections, and issuer the key that the server's configuration names.
func Serve(conn *nats.Conn, issuer nkeys.KeyPair, account string, admit Admit) error {
	_, err := conn.QueueSubscribe(subject, "hub", func(m *nats.Msg) {
		go func() {
			reply, err := answer(m.Data, issuer, account, admit)
			if err != nil {
				reply = nil // the server refuses the client
			}
			_ = m.Respond(reply) // the client tries again
		}()
	})
	return err
}

// answer checks a client's signature and returns its permissions as signed claims.
func answer(question []byte, issuer nkeys.KeyPair, account string, admit Admit) ([]byte, error) {
	request, err := jwt.DecodeAuthorizationRequestClaims(string(question))
	if err != nil {
		return nil, err
	}
	options := request.ConnectOptions
	key, err := nkeys.FromPublicKey(options.Nkey)
	if err != nil {
		return nil, err
	}
	signature, err := base64.RawURLEncoding.DecodeString(options.SignedNonce)
	if err != nil {
		return nil, err
	}
	nonce := request.ClientInformation.Nonce
	if nonce == "" {
		return nil, fmt.Errorf("the server gave no nonce")
	}
	if err := key.Verify([]byte(nonce), signature); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), admitTime)
	defer cancel()
	from, _ := netip.ParseAddr(request.ClientInformation.Host) // a host name is no address
	agent, err := admit(ctx, options.Nkey, from)
	if err != nil {
		return nil, err
	}
	user := jwt.NewUserClaims(request.UserNkey)
	user.Audience = account
	user.Name = options.Nkey
	user.Expires = time.Now().Add(sessionTime).Unix()
	user.Pub.Allow.Add(bus.Up(agent, ">"))
	user.Sub.Allow.Add(bus.Down(agent, ">"), bus.Inbox(agent)+".>")
	user.Resp = &jwt.ResponsePermission{MaxMsgs: 1, Expires: time.Minute}
	signed, err := user.Encode(issuer)
	if err != nil {
		return nil, err
	}
	response := jwt.NewAuthorizationResponseClaims(request.UserNkey)
	response.Audience = request.Server.ID
	response.Jwt = signed
	text, err := response.Encode(issuer)
	return []byte(text), err
}
