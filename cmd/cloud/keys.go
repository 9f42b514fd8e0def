package main

import (
	"fmt"
	"io"

	"github.com/postern-io/postern/cloud/server"
)

// keysCommand makes the keys of a new deployment.
type keysCommand struct {
	File string `arg:"" help:"Where to write them, mode 0600. It must not exist."`
}

func (k keysCommand) run(stdout io.Writer) error {
	if _, err := server.MakeKeys(k.File); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s holds the keys of a new deployment: what is sealed with them is lost without them\n", k.File)
	return err
}
