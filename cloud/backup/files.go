package backup

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/object"
)

// file is a line of the list of uploaded files.
type file struct {
	Name   string `json:"name"` // of the object
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// fileList are uploaded files that a target has. Their contents never change.
type fileList struct {
	list  map[string]file
	known map[string]file // of the backup before, and there
}

// knownFiles are those of the newest backup that are still in the target.
func (s *Service) knownFiles(ctx context.Context) (*fileList, error) {
	out := &fileList{list: map[string]file{}, known: map[string]file{}}
	m, err := s.findNewest(ctx)
	if errors.Is(err, ErrNone) {
		return out, nil
	}
	var before *fileList
	if err == nil {
		before, err = readFiles(ctx, s.cfg.Target, m)
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNewer) {
		s.cfg.Log.Warn("the list of files of the newest backup cannot be used; all are read", "backup", m.ID, "err", err)
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	have, err := sizes(ctx, s.cfg.Target)
	if err != nil {
		return nil, err
	}
	for name, f := range before.list {
		if n, ok := have[name]; ok && n == f.Size {
			out.known[name] = f
		}
	}
	return out, nil
}

// copy adds uploaded files that are not in the list, and copies those that the target
// lacks.
func (l *fileList) copy(ctx context.Context, from, to object.Store) error {
	for o, err := range from.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("list files: %w", err)
		}
		if _, ok := l.list[o.Name]; ok || !object.IsUpload(o.Name) {
			continue
		}
		if f, ok := l.known[o.Name]; ok && f.Size == o.Size {
			l.list[o.Name] = f
			continue
		}
		c, err := object.Copy(ctx, from, o.Name, to, contents+o.Name)
		if errors.Is(err, cloud.ErrNotFound) { // deleted since
			continue
		}
		if err != nil {
			return fmt.Errorf("copy file %s: %w", o.Name, err)
		}
		l.list[o.Name] = file{o.Name, c.Size, hex.EncodeToString(c.SHA256[:])}
	}
	return nil
}

// total counts files and their bytes.
func (l *fileList) total() (n int, bytes int64) {
	for _, f := range l.list {
		bytes += f.Size
	}
	return len(l.list), bytes
}

// encode writes a line for each, in order.
func (l *fileList) encode(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, name := range slices.Sorted(maps.Keys(l.list)) {
		if err := e.Encode(l.list[name]); err != nil {
			return err
		}
	}
	return nil
}

// readFiles reads the list of a backup. Error: ErrDamaged.
func readFiles(ctx context.Context, target object.Store, m Manifest) (*fileList, error) {
	out := &fileList{list: map[string]file{}}
	err := readZipped(ctx, target, m.ID, filesName, m.Files, func(r io.Reader) error {
		d := json.NewDecoder(bufio.NewReader(r))
		for {
			var f file
			err := d.Decode(&f)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil || !object.IsUpload(f.Name) {
				return fmt.Errorf("%w: the list of files", ErrDamaged)
			}
			out.list[f.Name] = f
		}
	})
	return out, err
}

// sizes are those of the files that a target has, by name.
func sizes(ctx context.Context, target object.Store) (map[string]int64, error) {
	out := map[string]int64{}
	for o, err := range target.List(ctx, contents) {
		if err != nil {
			return nil, fmt.Errorf("list files of backups: %w", err)
		}
		out[o.Name[len(contents):]] = o.Size
	}
	return out, nil
}
