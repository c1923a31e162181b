//go:build unix

package history

import (
	"errors"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// asUser makes a command run with a user's own rights and groups.
func asUser(cmd *exec.Cmd, who *user.User) error {
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return nil
}

// become gives up what rights this process has for those of a user, for good.
func become(who *user.User) error {
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return err
	}
	groups := []int{gid}
	if names, err := who.GroupIds(); err == nil { // else the first one is all it has
		for _, name := range names {
			if id, err := strconv.Atoi(name); err == nil {
				groups = append(groups, id)
			}
		}
	}
	return errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid))
}
