// Command httpdevice is the smallest device that speaks HTTP: the calls of lockers-devices 10.4
// (client/client.go), the rules of a device (client/device.go), and before them doors that it
// plays and a keypad on its standard input (main.go). It is there to be read, and to try a cloud
// with:
//
//	httpdevice --cloud https://cloud.example --code DROP-1 --token K7QM… --file drop.json
//
// Lines of its input: "code 123456", "scan PU:DROP-1:123456", "open 2" (by force), "close 2".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/postern-io/postern/cmd/httpdevice/client"
	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/protocol/wire"
)

// hardware is what the device has: here doors that are played.
type hardware struct{ device *client.Device }

// move moves a door. At a real device its switch says that it has moved.
func (h *hardware) move(n uint, state string) {
	fmt.Println("door", n, state)
	h.device.Moved(n, state)
}

// typed is what a person does at the device.
func (h *hardware) typed(line string) {
	var what, text string
	var n uint
	_, _ = fmt.Sscan(line, &what, &text)
	_, _ = fmt.Sscan(text, &n)
	input := map[string]string{"code": "keypad", "scan": "qr"}[what]
	switch {
	case input != "":
		out, err := h.device.Verify(context.Background(), text, input)
		fmt.Printf("answer %+v %v\n", out, err)
	case what == "open" || what == "close" && n > 0:
		h.move(n, map[string]string{"open": "open", "close": "closed"}[what])
		if err := h.device.Send(context.Background()); err != nil {
			log.Print(err)
		}
	}
}

// readSecrets reads the file of secrets, or enrols and makes it.
func readSecrets(cloud, code, token, file string) (s client.Secrets, err error) {
	if b, err := os.ReadFile(file); err == nil {
		return s, json.Unmarshal(b, &s)
	}
	if s, err = client.Enrol(context.Background(), cloud, nil, code, token); err != nil {
		return s, err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	return s, os.WriteFile(file, b, 0o600)
}

func main() {
	cloud, code := flag.String("cloud", "http://127.0.0.1:8080", "address of the cloud"), flag.String("code", "", "device code")
	token, file := flag.String("token", "", "enrolment token"), flag.String("file", "device.json", "where the secret is kept")
	version := flag.Bool("version", false, "print the version and stop")
	flag.Parse()
	if *version {
		if err := cli.PrintVersion(os.Stdout, "httpdevice"); err != nil {
			log.Fatal(err)
		}
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-end
		os.Exit(0)
	}()
	var h hardware
	cfg := client.Config{Cloud: *cloud,
		Unlock: func(n uint, _ wire.Command) { h.move(n, "open") }, // a real device pulses its lock here
		Do:     func(c wire.Command) { fmt.Println(c.Kind) }}
	var err error
	if cfg.Secrets, err = readSecrets(*cloud, *code, *token, *file); err != nil {
		log.Fatal(err)
	}
	for {
		if cfg.Doors, err = client.New(cfg).FindDoors(context.Background()); err == nil {
			break
		}
		log.Print(err)
		time.Sleep(time.Second)
	}
	for i := range cfg.Doors { // a real device reads its switches here
		cfg.Doors[i].State = "closed"
		fmt.Println("door", cfg.Doors[i].Door, "closed")
	}
	h.device = client.New(cfg)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			h.typed(in.Text())
		}
	}()
	for {
		if err := h.device.Turn(context.Background()); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}
