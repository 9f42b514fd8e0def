// Command httpdevice is the smallest device that speaks HTTP: the interface of
// lockers-devices 10.4 (device.go), before doors that it plays and a keypad on its standard
// input (main.go). It is there to be read, and to try a cloud with:
//
//	httpdevice --cloud https://cloud.example --code DROP-1 --token K7QM… --file drop.json
//
// Lines of its input: "code 123456", "scan PU:DROP-1:123456", "open 2" (by force), "close 2".
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// move changes a door and puts a report in line.
func (d *device) move(n uint, state string) {
	d.mu.Lock()
	for i := range d.doors {
		if d.doors[i].Door == n || n == 0 {
			d.doors[i].State = state
			fmt.Println("door", d.doors[i].Door, state)
		}
	}
	d.mu.Unlock()
	d.note(n)
}

// typed is what a person does at the device.
func (d *device) typed(line string) {
	var what, text string
	var n uint
	_, _ = fmt.Sscan(line, &what, &text)
	_, _ = fmt.Sscan(text, &n)
	input := map[string]string{"code": "keypad", "scan": "qr"}[what]
	switch {
	case input != "":
		var out json.RawMessage
		err := d.call("POST", "/api/v1/devices/codes/verify", map[string]string{"code": text, "input": input}, &out)
		fmt.Println("answer", string(out), err)
	case what == "open" || what == "close" && n > 0:
		d.move(n, map[string]string{"open": "open", "close": "closed"}[what])
		if err := d.send(); err != nil {
			log.Print(err)
		}
	}
}

func main() {
	d := &device{instance: rand.Text(), moved: map[uint]uint64{}, done: map[string]string{}}
	flag.StringVar(&d.base, "cloud", "http://127.0.0.1:8080", "address of the cloud")
	code, token, file := flag.String("code", "", "device code"), flag.String("token", "", "enrolment token"), flag.String("file", "device.json", "where the secret is kept")
	flag.Parse()
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-end
		os.Exit(0)
	}()
	if err := d.begin(*code, *token, *file); err != nil {
		log.Fatal(err)
	}
	var conf struct{ Doors []door }
	for d.call("GET", "/api/v1/devices/config", nil, &conf) != nil {
		time.Sleep(time.Second)
	}
	d.doors = conf.Doors
	d.move(0, "closed") // a real device reads its switches here
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			d.typed(in.Text())
		}
	}()
	for {
		if err := d.turn(); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}
