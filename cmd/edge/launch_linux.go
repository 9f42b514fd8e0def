package main

import (
	"os/exec"
	"syscall"
)

// endWithParent has a program ended when its parent is, however that ended.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
