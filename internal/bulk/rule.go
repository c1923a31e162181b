package bulk

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// RuleVariable makes this host's senders buffer as other systems' do: "afd:8192". A lab
// sets it for old stacks.
const RuleVariable = "FULLPIPE_SENDER_RULE"

// ReceiverVariable bounds the window of this host's receivers where no receive buffer or
// window is asked for, from the handshake on: "clamp:64512". A lab sets it for stacks
// with a scale factor of 0.
const ReceiverVariable = "FULLPIPE_RECEIVER_RULE"

// receiverRule is the window in bytes that ReceiverVariable states; 0 is none.
func receiverRule() int {
	name, size, _ := strings.Cut(os.Getenv(ReceiverVariable), ":")
	bytes, err := strconv.Atoi(size)
	if name != "clamp" || err != nil || bytes < 0 {
		return 0
	}
	return bytes
}

// senderRule is the rule in force at an end; nil is the kernel's own. A send buffer that
// is asked for is the rule's quota.
func senderRule(send bool, own transfer.Socket) (*model.AFD, error) {
	text := os.Getenv(RuleVariable)
	if text == "" || !send {
		return nil, nil
	}
	name, quota, _ := strings.Cut(text, ":")
	bytes, err := strconv.Atoi(quota)
	if name != "afd" || err != nil || bytes <= 0 {
		return nil, fmt.Errorf("%s: %q is no sender's rule; write it as afd:%d", RuleVariable, text, model.DefaultAFDQuota)
	}
	if own.SendBuffer > 0 {
		bytes = own.SendBuffer
	}
	return &model.AFD{Quota: bytes}, nil
}

// Options returns the options of this end's sockets. Under a sender's rule the kernel's buffer must not limit, so it
// stays automatic. Under a receiver's rule the window is bounded if the Spec requests none.
func Options(send bool, own transfer.Socket) socket.Options {
	if os.Getenv(RuleVariable) != "" && send {
		own.SendBuffer = 0
	}
	if !send && own.ReceiveBuffer == 0 && own.Clamp == 0 {
		own.Clamp = receiverRule()
	}
	return socket.Options{Socket: own}
}

// own returns the socket settings that the Spec requests for this end.
func (p Endpoint) own() transfer.Socket {
	if p.Send == (p.Spec.Direction == transfer.Up) {
		return p.Spec.Near
	}
	return p.Spec.Far
}
