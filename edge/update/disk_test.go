package update

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"
)

var (
	errPower = errors.New("the power is gone")
	errFull  = errors.New("no space left")
)

// simDisk is a folder whose power goes before a step. Afterwards each image that a file
// system may have left can be looked at: changes of names since the last sync of the
// folder happened or not, each for itself, and content that was not synced is there in part.
type simDisk struct {
	names   map[string]*content
	durable map[string]*content // after the last sync of the folder
	pending []naming
	steps   int
	cut     int  // the step before which power goes; 0: never
	full    int  // the step that fails alone, as on a full disk; 0: none
	noSync  bool // a broken disk: syncs of files do nothing
}

type content struct {
	now    []byte
	synced []byte
	dirty  bool
}

// naming is a change of names: file is at to from then on, and from is free.
type naming struct {
	from, to string
	file     *content
}

func newSimDisk() *simDisk {
	return &simDisk{names: map[string]*content{}, durable: map[string]*content{}}
}

// step counts a step, and fails it when the power is gone.
func (d *simDisk) step() error {
	if d.cut != 0 && d.steps+1 >= d.cut {
		return errPower
	}
	d.steps++
	if d.steps == d.full {
		return errFull
	}
	return nil
}

func (d *simDisk) rename(n naming) {
	n.apply(d.names)
	d.pending = append(d.pending, n)
}

func (n naming) apply(names map[string]*content) {
	if n.from != "" {
		delete(names, n.from)
	}
	if n.to != "" {
		names[n.to] = n.file
	}
}

func (d *simDisk) Path(name string) string { return "/versions/" + name }

func (d *simDisk) ReadFile(name string) ([]byte, error) {
	if c := d.names[name]; c != nil {
		return bytes.Clone(c.now), nil
	}
	return nil, fs.ErrNotExist
}

func (d *simDisk) Open(name string) (io.ReadCloser, error) {
	raw, err := d.ReadFile(name)
	return io.NopCloser(bytes.NewReader(raw)), err
}

func (d *simDisk) Create(name string) (File, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	c := d.names[name]
	if c == nil {
		c = &content{}
		d.rename(naming{to: name, file: c})
	}
	c.now, c.dirty = nil, true
	return &simFile{d, c}, nil
}

func (d *simDisk) Rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	d.rename(naming{from, to, d.names[from]})
	return nil
}

func (d *simDisk) Remove(name string) error {
	if err := d.step(); err != nil {
		return err
	}
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	d.rename(naming{from: name})
	return nil
}

func (d *simDisk) Names() ([]string, error) { return slices.Sorted(maps.Keys(d.names)), nil }

func (d *simDisk) Sync() error {
	if err := d.step(); err != nil {
		return err
	}
	d.durable, d.pending = maps.Clone(d.names), nil
	return nil
}

func (d *simDisk) Lock(string, time.Duration) (io.Closer, error) {
	return io.NopCloser(nil), nil
}

type simFile struct {
	disk *simDisk
	file *content
}

func (f *simFile) Write(p []byte) (int, error) {
	if err := f.disk.step(); err != nil {
		// What a write has done when power goes in its midst is a part of it.
		f.file.now = append(f.file.now, p...)
		return 0, err
	}
	f.file.now = append(f.file.now, p...)
	return len(p), nil
}

func (f *simFile) Sync() error {
	if err := f.disk.step(); err != nil {
		return err
	}
	if !f.disk.noSync {
		f.file.synced, f.file.dirty = bytes.Clone(f.file.now), false
	}
	return nil
}

func (f *simFile) Close() error { return nil }

// images calls look with each disk that the power may have left, with power again. stride
// is how many bytes lie between two lengths of a file that is there in part.
func (d *simDisk) images(stride int, look func(*simDisk)) {
	for subset := range 1 << len(d.pending) {
		names := maps.Clone(d.durable)
		for i, n := range d.pending {
			if subset&(1<<i) != 0 {
				n.apply(names)
			}
		}
		d.torn(names, stride, look)
	}
}

// torn tears the content of one file after the other.
func (d *simDisk) torn(names map[string]*content, stride int, look func(*simDisk)) {
	see := func(torn string, raw []byte) {
		next := newSimDisk()
		for name, c := range names {
			now := c.now
			if name == torn {
				now = raw
			}
			next.names[name] = &content{now: bytes.Clone(now), synced: bytes.Clone(now)}
		}
		next.durable = maps.Clone(next.names)
		look(next)
	}
	see("", nil)
	for name, c := range names {
		if !c.dirty {
			continue
		}
		see(name, c.synced)
		for n := 0; n < len(c.now); n += stride {
			see(name, c.now[:n])
		}
	}
}
