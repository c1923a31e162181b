package iperf3

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
)

// loginFlags are iperf3's flags of an authenticated client.
type loginFlags struct {
	user, publicKey string
	pkcs1           bool
}

func (l *loginFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&l.user, "username", "", "user name; the password is in IPERF3_PASSWORD")
	fl.StringVar(&l.publicKey, "rsa-public-key-path", "", "the server's public key")
}

// pkcs1Flag adds the flag of both ends.
func (l *loginFlags) pkcs1Flag(fl *pflag.FlagSet) {
	fl.BoolVar(&l.pkcs1, "use-pkcs1-padding", false, "for a far end before 3.17: PKCS#1 v1.5 instead of OAEP")
}

// passwordVariable is iperf3's environment variable for the password.
const passwordVariable = "IPERF3_PASSWORD"

// token returns the encrypted login, "" without a user.
func (l *loginFlags) token(cmd *cobra.Command) (string, error) {
	if l.user == "" && l.publicKey == "" {
		return "", nil
	}
	password := os.Getenv(passwordVariable)
	switch {
	case l.user == "":
		return "", exit.Usage("--username", "a public key needs a user", "--username NAME")
	case l.publicKey == "":
		return "", exit.Usage("--rsa-public-key-path", "a user needs the server's public key", "--rsa-public-key-path FILE")
	case password == "":
		return "", exit.Usage(passwordVariable, "the password is missing", passwordVariable+"=… in the environment")
	}
	key, err := input.Read(cmd, l.publicKey, 64<<10)
	if err != nil {
		return "", exit.Usage("--rsa-public-key-path", exit.Plain(err), "the server's public key in PEM")
	}
	token, err := iperf3.Token(key, iperf3.Login{User: l.user, Password: password, At: time.Now()}, l.pkcs1)
	if err != nil {
		return "", exit.Usage("--rsa-public-key-path", exit.Plain(err), "the server's public key in PEM")
	}
	return token, nil
}
