// Program cloud is the core: device broker, locker rules, webhooks and HTTP.
//
//	cloud                               serves; SQLite in the data folder. The first start prints the address of the set-up page
//	cloud setup --email a@b.example     makes a business and its administrator without that page
//	cloud demo-data                     adds a sandbox and prints what is in it, once
//	cloud --config cloud.yaml --check   checks settings and stops
//	cloud admin reset --email a@b.example   removes a second factor that was lost
//	cloud backup FOLDER                 database and uploaded files, while it serves
//	cloud restore FOLDER                a cloud from them, in an empty data folder
//	cloud files move --to bucket        uploaded files, from their folder
//	cloud schema status                 migrations: what is pending, and who runs; schema up runs them
//	cloud rebuild --write               timeline events that the journal proves and that are missing
//	cloud rebuild --refold --write      statuses and checkpoints that are not what the events lead to
//	cloud keys FILE                     the keys of a new deployment, for keys_file
//	cloud ready                         whether the node on this machine serves, for health checks
//	cloud support-bundle out.tar.gz
//
// Long flags may have one dash. A flag wins over the environment, that over the
// settings file. Logs are JSON lines on standard error. SIGINT and SIGTERM stop
// it in order: intake first, the store last. SIGHUP has the settings read again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cmd/internal/cli"
)

type options struct {
	Config         string         `help:"Settings, YAML. Unknown keys are refused." placeholder:"FILE"`
	Listen         *string        `help:"HTTP address; empty: none." placeholder:"HOST:PORT"`
	MQTTListen     *string        `name:"mqtt-listen" help:"Plain MQTT address, on the loopback; empty: none." placeholder:"HOST:PORT"`
	MQTTPlain      bool           `name:"mqtt-plain" help:"Let plain MQTT listen beyond the loopback. Device passwords then cross the network in the clear."`
	MQTTTLSListen  *string        `name:"mqtt-tls-listen" help:"MQTT address with TLS." placeholder:"HOST:PORT"`
	MQTTWSListen   *string        `name:"mqtt-ws-listen" help:"MQTT over WebSocket, on the loopback, behind a proxy that has TLS." placeholder:"HOST:PORT"`
	MQTTWSSListen  *string        `name:"mqtt-wss-listen" help:"MQTT over WebSocket with TLS." placeholder:"HOST:PORT"`
	Broker         []string       `help:"Broker address for enrolling devices; repeat for more. Default: from the MQTT addresses." placeholder:"URL"`
	TLSCert        *string        `help:"Certificate chain, PEM." placeholder:"FILE"`
	TLSKey         *string        `help:"Its key, PEM, readable by its owner alone." placeholder:"FILE"`
	TLSListen      *string        `name:"tls-listen" help:"HTTPS address; empty: none. Plain HTTP then only leads there." placeholder:"HOST:PORT"`
	TLSName        []string       `name:"tls-name" help:"Public name for which certificates are fetched and renewed; repeat for more." placeholder:"NAME"`
	TLSEmail       *string        `name:"tls-email" help:"Address at which the certificate authority warns." placeholder:"EMAIL"`
	TrustedProxy   []string       `name:"trusted-proxy" help:"Network of a proxy whose word about callers counts; repeat for more." placeholder:"CIDR"`
	Origin         []string       `help:"Origin of pages of others that may call the interface; repeat for more." placeholder:"URL"`
	Limit          map[string]int `help:"Calls a minute by name, 0 for no limit; repeat for more. The names are at /docs." placeholder:"NAME=N"`
	Data           *string        `help:"Folder of keys and, with SQLite, the database." placeholder:"DIR"`
	Objects        *string        `env:"POSTERN_OBJECTS" help:"Folder of uploaded files; with several nodes one that all of them share. Default: files in the data folder." placeholder:"DIR"`
	Database       *string        `env:"POSTERN_DATABASE" help:"postgres://… or a file; empty: SQLite in the data folder. It may hold a password: better use the environment or --database-file." placeholder:"URL"`
	DatabaseFile   *string        `help:"File that holds the database's address." placeholder:"FILE"`
	Migrate        *string        `help:"When migrations of the database are run: start (the node that starts runs them) or command (cloud schema up does). Default: start." placeholder:"WHEN"`
	BaseURL        *string        `help:"Public address, for links." placeholder:"URL"`
	Prefix         *string        `help:"First levels of all MQTT topics." placeholder:"PREFIX"`
	Node           *string        `help:"Name of this node, different on each. Default: the host's." placeholder:"NAME"`
	NodeAddress    *string        `help:"Where other nodes reach this one's HTTP, to ask whether it runs. Default: from the address that it listens at." placeholder:"URL"`
	Roles          *string        `help:"What this process does: all, edge (connections of devices over MQTT) or core (HTTP, webhooks and background tasks). Default: all." placeholder:"ROLES"`
	AdminListen    *string        `help:"Address of metrics, profiles and health, on the loopback or with a token; empty: none." placeholder:"HOST:PORT"`
	WebhookNetwork []string       `name:"webhook-allow-network" help:"Private network that webhook receivers may be in; repeat for more." placeholder:"CIDR"`
	WebhookPort    []uint16       `name:"webhook-allow-port" help:"Further port that webhook receivers may use; repeat for more." placeholder:"PORT"`
	WebhookHTTP    bool           `name:"webhook-http" help:"Let webhook receivers use plain http."`
	WebhookProxy   *string        `name:"webhook-proxy" help:"HTTP proxy (CONNECT) by which webhook receivers are reached; empty: directly. Its login is in the file that webhook.proxy_secret_file of the settings names." placeholder:"URL"`
	OTLPEndpoint   *string        `name:"otlp-endpoint" env:"POSTERN_OTLP_ENDPOINT" help:"Trace collector that gets every parcel's journey, OTLP over HTTP; empty: none." placeholder:"URL"`
	LogLevel       *string        `help:"Least level that is logged: debug, info, warn or error." placeholder:"LEVEL"`
	Check          bool           `help:"Check settings and stop."`
	Version        bool           `help:"Print the version and stop."`

	Serve    struct{}     `cmd:"" default:"1" help:"Serve."`
	Keys     keysCommand  `cmd:"" help:"Make the keys of a new deployment in a file, for keys_file, where nodes share no data folder."`
	Ready    readyCommand `cmd:"" help:"Ask the node on this machine, at the address of its settings, whether it serves: exit status 0 or 1."`
	DemoData demoData     `cmd:"" help:"Add a sandbox to the database and print what is in it as one JSON object. Its secrets are shown this once."`
	Setup    setupCommand `cmd:"" help:"Make a business with its administrator, or an operator of the platform, or give one of them a new password."`
	Admin    struct {
		Reset adminReset `cmd:"" help:"Remove the second factor of a person who lost it, and end the person's sessions. The password stays."`
	} `cmd:"" help:"Help people who cannot log in."`
	Schema struct {
		Status schemaStatus `cmd:"" help:"Print what this program needs, what the database has, which migrations are pending and which programs run. Nothing is changed."`
		Up     schemaUp     `cmd:"" help:"Run the migrations that are pending, while other nodes run."`
	} `cmd:"" help:"Look after the tables of the database."`
	Backup    backupCommand    `cmd:"" help:"Take a backup of database and uploaded files, also while the cloud runs, and read it back."`
	Restore   restoreCommand   `cmd:"" help:"Make a cloud from a backup, in an empty data folder or database, and start it once."`
	Recovered recoveredCommand `cmd:"" help:"Let a database go on that went back to an earlier moment by other means than restore, as to PostgreSQL's point in time or a snapshot of a disk. Stop all nodes before, and start them after."`
	Files     struct {
		Move filesMove `cmd:"" help:"Move uploaded files and archives of businesses from the folder to the bucket, or back. One that was interrupted goes on when it is started again."`
	} `cmd:"" help:"Look after uploaded files."`
	Program struct {
		Add  programAdd  `cmd:"" help:"Add a signed program of cabinets, from a file of release sign, so that they can be updated with it."`
		List programList `cmd:"" help:"List the programs that cabinets can be updated with."`
	} `cmd:"" help:"Look after programs of cabinets."`
	SigningKey struct {
		Status  signingKeyStatus  `cmd:"" help:"Print the key that signs messages to cabinets, the next one, and the cabinets that are not known to trust it."`
		Rotate  signingKeyRotate  `cmd:"" help:"Take the next key into use and draw another next one, in the keys file; nodes sign with it from their next start. Refused while cabinets would be lost."`
		Publish signingKeyPublish `cmd:"" help:"Give every cabinet the present keys, once all nodes have started with them: cabinets drop the former key."`
	} `cmd:"" help:"Rotate the key that signs messages to cabinets, without a visit to one."`
	Rebuild       rebuildCommand `cmd:"" help:"Read the journal of all devices again and print, as one JSON object, which timeline events it proves that are missing or stored otherwise; or fold timelines from their events. Nothing is sent to anybody."`
	SupportBundle struct {
		File string `arg:"" help:"Where to write the bundle, tar.gz."`
	} `cmd:"" help:"Collect versions, settings, devices and counters; never secrets or codes."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cloud:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var opt options
	command, err := cli.Parse(&opt, "cloud", "The core of the tracking and locker gateway.", args, stdout, stderr)
	if errors.Is(err, cli.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if opt.Version {
		return cli.PrintVersion(stdout, "cloud")
	}
	s, err := load(opt)
	if err != nil {
		return err
	}
	if opt.Check {
		return check(s, stdout, stderr)
	}
	logs, err := newLogs(stderr, s)
	if err != nil {
		return err
	}
	log := logs.main
	switch command.Command() {
	case "keys <file>":
		return opt.Keys.run(stdout)
	case "ready":
		return opt.Ready.run(ctx, s, stdout)
	case "demo-data":
		return opt.DemoData.run(ctx, s, log, stdout)
	case "setup":
		return opt.Setup.run(ctx, s, log, stdin, stdout)
	case "admin reset":
		return opt.Admin.Reset.run(ctx, s, log, stdout)
	case "backup", "backup <folder>":
		return opt.Backup.run(ctx, s, log, stdout)
	case "restore", "restore <folder>":
		return opt.Restore.run(ctx, s, log, stdout)
	case "recovered <at>":
		return opt.Recovered.run(ctx, s, log, stdout)
	case "files move":
		return opt.Files.Move.run(ctx, s, log, stdout)
	case "program add <file>":
		return opt.Program.Add.run(ctx, s, log, stdout)
	case "program list":
		return opt.Program.List.run(ctx, s, log, stdout)
	case "schema status":
		return opt.Schema.Status.run(ctx, s, stdout)
	case "schema up":
		return opt.Schema.Up.run(ctx, s, stdout)
	case "signing-key status":
		return opt.SigningKey.Status.run(ctx, s, log, stdout)
	case "signing-key rotate":
		return opt.SigningKey.Rotate.run(ctx, s, log, stdout)
	case "signing-key publish":
		return opt.SigningKey.Publish.run(ctx, s, log, stdout)
	case "rebuild":
		return opt.Rebuild.run(ctx, s, log, stdout)
	case "support-bundle <file>":
		return supportBundle(ctx, s, opt.SupportBundle.File, log, stdout)
	}
	return serve(ctx, opt, s, logs, stdout)
}

// check looks at what a start would need beside settings that are in order, and prints
// what it found. What is most likely a mistake goes to stderr.
func check(s settings, stdout, stderr io.Writer) error {
	if err := checkFolder(s.Data); err != nil {
		return fmt.Errorf("settings: data: %w", err)
	}
	for _, text := range s.warnings() {
		if _, err := fmt.Fprintln(stderr, "warning:", text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(stdout, "in order:", s)
	return err
}

// unlessStopped is err, or nil when it is that the process was asked to end while it started.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// serve runs until ctx ends. SIGHUP has the settings read again.
func serve(ctx context.Context, opt options, s settings, logs *logs, stdout io.Writer) (err error) {
	log := logs.main
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	ln, err := listen(s, log) // answers nothing yet
	if err != nil {
		return err
	}
	release, err := store.Hold(s.database()) // before it migrates or prints
	if err != nil {
		return errors.Join(err, closeListeners(ln))
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, text := range s.warnings() {
		log.Warn(text)
	}
	cfg := s.server(log)
	cfg.AccessLog, cfg.Held = logs.access, true
	srv, err := server.New(ctx, cfg)
	if err != nil {
		return errors.Join(unlessStopped(ctx, err), closeListeners(ln))
	}
	if err = server.Enter(ctx, srv, ln); err == nil {
		err = begin(ctx, srv, s, ln, log, stdout)
	}
	if err != nil {
		return errors.Join(unlessStopped(ctx, err), server.Leave(srv), closeListeners(ln), closeAll(srv))
	}
	settings, err := newReloader(opt, s, srv, logs)
	if err != nil {
		return errors.Join(err, server.Leave(srv), closeListeners(ln), closeAll(srv))
	}
	rereads, stop := context.WithCancel(ctx)
	var rereading sync.WaitGroup
	rereading.Go(func() { settings.run(rereads, again) })
	defer rereading.Wait()
	defer stop()
	log.Info("serving", "version", cli.Version(), "http", address(ln.HTTP), "https", address(ln.HTTPS), "mqtt", address(ln.MQTT), "mqtt_tls", address(ln.MQTTTLS), "mqtt_ws", address(ln.WebSocket), "mqtt_wss", address(ln.WebSocketTLS), "admin", address(ln.Admin))
	return srv.Run(ctx, ln)
}
