//go:build unix

package history

import (
	"errors"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// asUser sets a command's user and group IDs to those of the account.
func asUser(cmd *exec.Cmd, account *user.User) error {
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return nil
}

// become switches this process to the user and group IDs of the account, permanently.
func become(account *user.User) error {
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return err
	}
	groups := []int{gid}
	if names, err := account.GroupIds(); err == nil { // else only the primary group
		for _, name := range names {
			if id, err := strconv.Atoi(name); err == nil {
				groups = append(groups, id)
			}
		}
	}
	return errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid))
}
