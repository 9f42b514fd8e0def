package cloud

import "time"

// Node is a running process of the cloud: its lease among those that share a database.
type Node struct {
	// Instance is random and new at every start. Leases of work and connections of
	// devices name it.
	Instance string
	Name     string // one running process has it at a time
	// Generation rises each time that another process takes the name.
	Generation int64
	Address    string // where the process answers /healthz, scheme://host:port; empty: nowhere
	Version    string // of the program
	Schema     string // a digest of the tables that the program was built with
	// SchemaNumber is that of the newest migration that the program knows.
	SchemaNumber int64
	Edge, Core   bool // what part it takes: connections of devices; everything else
	StartedAt    time.Time
	SigningKey   string // identifier of the key that it signs with; empty: its release did not say
	// Beat rises by one with each renewal of the lease.
	Beat int64
}
