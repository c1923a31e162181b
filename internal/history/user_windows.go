package history

import (
	"errors"
	"os/exec"
	"os/user"
)

// asUser is not needed where there is no sudo.
func asUser(*exec.Cmd, *user.User) error { return errors.New("there is no sudo here") }

func become(*user.User) error { return errors.New("there is no sudo here") }
