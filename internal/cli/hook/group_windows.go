package hook

import "os/exec"

// asGroup does nothing: the command alone is ended.
func asGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) error { return nil }
