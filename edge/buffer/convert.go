package buffer

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// layoutVersion is the layout that this agent writes. It opens the ones before
// it, too.
const layoutVersion = 2

// bucketOld holds what layout 1 had of each lane: where it ended (keyEnd and the
// others, their first byte), and its segments by their first number. A lane had
// to write a page of that bucket with every commit.
//
// Its segments stay there until they are acknowledged or evicted, and what it
// says of the end stays as it was. An agent that knows only layout 1 thus finds
// it sound and refuses the layout; without it, it would take the file for
// damaged and move it aside.
var bucketOld = [2][]byte{[]byte("lane0"), []byte("lane1")}

// convert makes layout 2 of layout 1, in one transaction that writes no record.
func convert(tx *bolt.Tx) error {
	lanes, err := tx.CreateBucket(bucketLanes)
	if err != nil {
		return err
	}
	for l, name := range bucketOld {
		old := tx.Bucket(name)
		if old == nil {
			return damaged("no bucket %s", name)
		}
		for _, k := range [][]byte{keyEnd[l], keyAcked[l], keyGap[l]} {
			v := old.Get(k[:1])
			if v == nil {
				continue
			}
			if err := lanes.Put(k, v); err != nil {
				return err
			}
		}
	}
	return tx.Bucket(bucketMeta).Put(keyVersion, seqKey(layoutVersion))
}

// maxVersion is the highest number that can be a layout. A number above is
// damage.
const maxVersion = 255

// parseVersion reads the number of a layout. A later one than this agent knows
// is an error that is no damage: the file is left as it is.
func parseVersion(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, damaged("layout number of %d bytes", len(v))
	}
	n := binary.BigEndian.Uint64(v)
	switch {
	case n == 0 || n > maxVersion:
		return 0, damaged("layout %d", n)
	case n > layoutVersion:
		return 0, fmt.Errorf("store has layout %d, this agent knows layouts up to %d: start a newer agent", n, layoutVersion)
	}
	return n, nil
}
