package main

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/notification"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/cmd/internal/cli"
	"github.com/postern-io/postern/protocol/signature"
	"github.com/postern-io/postern/protocol/topic"
)

// settings is the settings file.
type settings struct {
	Listen string `yaml:"listen" json:"listen"`
	MQTT   struct {
		Listen    string   `yaml:"listen" json:"listen"`
		Plain     bool     `yaml:"plain" json:"plain"` // beyond the loopback
		TLSListen string   `yaml:"tls_listen" json:"tls_listen"`
		WSListen  string   `yaml:"ws_listen" json:"ws_listen"`
		WSSListen string   `yaml:"wss_listen" json:"wss_listen"`
		Brokers   []string `yaml:"brokers" json:"brokers"` // that enrolling devices get
		AppURL    string   `yaml:"app_url" json:"app_url"` // that people's apps get
		AppWSURL  string   `yaml:"app_websocket_url" json:"app_websocket_url"`
		Prefix    string   `yaml:"prefix" json:"prefix"`
	} `yaml:"mqtt" json:"mqtt"`
	ReleaseKeys []string       `yaml:"release_keys" json:"release_keys"` // public ones, that enrolling devices get
	TLS         tlsSettings    `yaml:"tls" json:"tls"`
	Proxies     proxySettings  `yaml:"proxies" json:"proxies"`
	Origins     []string       `yaml:"origins" json:"origins"` // pages of others that may call
	Limits      map[string]int `yaml:"limits" json:"limits"`   // by the names of cloud/server
	Connections struct {
		HTTP limit.Connections `yaml:"http" json:"http"`
		MQTT limit.Connections `yaml:"mqtt" json:"mqtt"`
	} `yaml:"connections" json:"connections"` // that are open at once
	Admin        adminSettings  `yaml:"admin" json:"admin"`
	Setup        setupSettings  `yaml:"setup" json:"setup"`
	Data         string         `yaml:"data" json:"data"`
	KeysFile     string         `yaml:"keys_file" json:"keys_file"` // empty: in Data
	Objects      string         `yaml:"objects" json:"objects"`     // uploaded files; empty: in Data
	Bucket       bucketSettings `yaml:"bucket" json:"bucket"`       // of uploaded files, in place of a folder
	Backup       backupSettings `yaml:"backup" json:"backup"`
	Database     string         `yaml:"database" json:"-"` // may hold a password
	DatabaseFile string         `yaml:"database_file" json:"database_file"`
	BaseURL      string         `yaml:"base_url" json:"base_url"`
	Migrate      string         `yaml:"migrate" json:"migrate"` // at the start, or by the command schema up
	Node         string         `yaml:"node" json:"node"`
	NodeAddress  string         `yaml:"node_address" json:"node_address"` // for other nodes
	Roles        string         `yaml:"roles" json:"roles"`               // by server.ParsePart
	Stop         struct {
		Announce string `yaml:"announce" json:"announce"` // durations
		Drain    string `yaml:"drain" json:"drain"`
	} `yaml:"stop" json:"stop"`
	Webhook struct {
		AllowNetworks []string `yaml:"allow_networks" json:"allow_networks"`
		AllowPorts    []uint16 `yaml:"allow_ports" json:"allow_ports"`
		HTTP          bool     `yaml:"http" json:"http"`
		DenyHosts     []string `yaml:"deny_hosts" json:"deny_hosts"`
		Proxy         string   `yaml:"proxy" json:"proxy"`
		ProxySecret   string   `yaml:"proxy_secret_file" json:"proxy_secret_file"`
		SecretOverlap string   `yaml:"secret_overlap" json:"secret_overlap"`
	} `yaml:"webhook" json:"webhook"`
	Push    hookSettings     `yaml:"push" json:"push"`
	SMS     hookSettings     `yaml:"sms" json:"sms"`
	Mail    mailSettings     `yaml:"mail" json:"mail"`
	SignIn  []signInSettings `yaml:"sign_in" json:"sign_in"` // providers of businesses
	Numbers struct {
		Legacy string `yaml:"legacy" json:"legacy"` // what old tracking numbers show without proof
	} `yaml:"numbers" json:"numbers"`
	Timelines struct {
		Events int `yaml:"events" json:"events"` // that one takes, before only those that end it are taken
	} `yaml:"timelines" json:"timelines"`
	OTLPEndpoint string   `yaml:"otlp_endpoint" json:"otlp_endpoint"`
	OTLPShare    float64  `yaml:"otlp_share" json:"otlp_share"` // of calls that are followed, from 0 to 1
	LogLevel     string   `yaml:"log_level" json:"log_level"`
	AccessLog    bool     `yaml:"access_log" json:"access_log"`
	Unavailable  []string `yaml:"unavailable" json:"unavailable"`
	HideSchema   bool     `yaml:"graphql_hide_schema" json:"graphql_hide_schema"`

	part        server.Part
	otlpHeaders map[string]string
	stop        server.Stop
	networks    []netip.Prefix
	proxies     peer.Proxies
	password    string // of the first administrator
	overlap     time.Duration
	proxyLogin  string
	releaseKeys []ed25519.PublicKey
	providers   []oidc.Provider
	bucket      *object.BucketConfig // nil: none
	backup      server.BackupConfig
}

// When migrations of the database are run.
const (
	migrateStart   = "start"
	migrateCommand = "command"
)

// maxOverlap is how long two secrets may be good at once.
const maxOverlap = 7 * 24 * time.Hour

// usualListen is where HTTP listens unless set: on this computer alone. Where that reaches
// no caller, as in a container, the variable names another one.
const (
	usualListen         = "127.0.0.1:8080"
	usualPage           = "http://localhost:8080" // the same for people: browsers keep passkeys for a name alone
	usualListenVariable = "POSTERN_USUAL_LISTEN"
)

// defaults are the settings of a node without configuration.
func defaults() settings {
	s := settings{Listen: cmp.Or(os.Getenv(usualListenVariable), usualListen), Data: "data/cloud", Migrate: migrateStart, LogLevel: "info", OTLPShare: 0.05}
	s.Numbers.Legacy = tracking.LegacyReduced
	s.Timelines.Events = cloud.TimelineEvents
	s.Webhook.SecretOverlap = webhook.Overlap.String()
	s.MQTT.Listen, s.MQTT.Prefix = "127.0.0.1:1883", topic.DefaultPrefix
	s.Proxies.Header = peer.XForwardedFor
	s.Mail.Encryption = notification.StartTLS
	s.TLS.HSTS = "4320h"
	s.Admin.Listen = usualAdmin
	s.Backup.Every, s.Backup.Keep = usualBackup.String(), usualKept
	return s
}

// load puts defaults, file, environment and flags together and checks all of it.
func load(opt options) (settings, error) {
	s := defaults()
	if opt.Config != "" {
		if err := cli.ReadYAML(opt.Config, &s); err != nil {
			return s, err
		}
	}
	for _, f := range []struct{ flag, field *string }{{opt.Listen, &s.Listen}, {opt.MQTTListen, &s.MQTT.Listen}, {opt.MQTTTLSListen, &s.MQTT.TLSListen}, {opt.MQTTWSListen, &s.MQTT.WSListen},
		{opt.MQTTWSSListen, &s.MQTT.WSSListen}, {opt.AdminListen, &s.Admin.Listen},
		{opt.TLSCert, &s.TLS.Cert}, {opt.TLSKey, &s.TLS.Key}, {opt.TLSListen, &s.TLS.Listen}, {opt.TLSEmail, &s.TLS.Email}, {opt.Data, &s.Data}, {opt.Objects, &s.Objects}, {opt.Database, &s.Database}, {opt.DatabaseFile, &s.DatabaseFile}, {opt.BaseURL, &s.BaseURL},
		{opt.Prefix, &s.MQTT.Prefix}, {opt.Migrate, &s.Migrate}, {opt.WebhookProxy, &s.Webhook.Proxy}, {opt.Node, &s.Node}, {opt.NodeAddress, &s.NodeAddress}, {opt.Roles, &s.Roles}, {opt.OTLPEndpoint, &s.OTLPEndpoint}, {opt.LogLevel, &s.LogLevel}} {
		if f.flag != nil {
			*f.field = *f.flag
		}
	}
	s.MQTT.Plain = s.MQTT.Plain || opt.MQTTPlain
	s.Webhook.HTTP = s.Webhook.HTTP || opt.WebhookHTTP
	s.MQTT.Brokers = append(s.MQTT.Brokers, opt.Broker...)
	s.Webhook.AllowNetworks = append(s.Webhook.AllowNetworks, opt.WebhookNetwork...)
	s.Webhook.AllowPorts = append(s.Webhook.AllowPorts, opt.WebhookPort...)
	s.TLS.Names = append(s.TLS.Names, opt.TLSName...)
	s.Proxies.Trusted = append(s.Proxies.Trusted, opt.TrustedProxy...)
	s.Origins = append(s.Origins, opt.Origin...)
	for name, n := range opt.Limit {
		if s.Limits == nil {
			s.Limits = map[string]int{}
		}
		s.Limits[name] = n
	}
	if err := s.readDatabase(); err != nil {
		return s, err
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	return s, nil
}

// readDatabase takes the database's address from its own file.
func (s *settings) readDatabase() error {
	if s.DatabaseFile == "" {
		return nil
	}
	if s.Database != "" {
		return errors.New("settings: database and database_file are both set; keep one")
	}
	raw, err := cli.ReadSecret(s.DatabaseFile)
	if err != nil {
		return fmt.Errorf("database_file: %w", err)
	}
	if s.Database = strings.TrimSpace(string(raw)); s.Database == "" {
		return fmt.Errorf("database_file: %s is empty", s.DatabaseFile)
	}
	return nil
}

// check reports everything wrong, and what to do about it. It fills in what
// follows from the rest.
func (s *settings) check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.Data == "" {
		bad("data: name a folder for keys and database")
	}
	if s.KeysFile != "" {
		if err := cli.CheckSecret(s.KeysFile); err != nil {
			bad("keys_file: %w", err)
		}
	}
	if !slices.Contains(cli.Levels, s.LogLevel) {
		bad("log_level %q: use one of %s", s.LogLevel, strings.Join(cli.Levels, ", "))
	}
	if s.Migrate != migrateStart && s.Migrate != migrateCommand {
		bad("migrate %q: use %s or %s", s.Migrate, migrateStart, migrateCommand)
	}
	if err := checkDatabase(s.Database); err != nil {
		bad("database: %w", err)
	}
	s.checkListeners(bad)
	s.checkTLS(bad)
	s.checkProxies(bad)
	s.checkOrigins(bad)
	s.checkLimits(bad)
	s.checkAdmin(bad)
	s.checkSetup(bad)
	s.bucket = s.Bucket.check("bucket", bad)
	s.checkBackup(bad)
	if !topic.ValidPrefix(s.MQTT.Prefix) {
		bad("mqtt.prefix %q: levels of A-Z a-z 0-9 _ - joined by slashes, at most 64 characters", s.MQTT.Prefix)
	}
	if s.NodeAddress != "" && !isURL(s.NodeAddress, "http", "https") {
		bad("node_address %q: use an address such as http://10.0.0.4:8080", s.NodeAddress)
	}
	var unknown error
	if s.part, unknown = server.ParsePart(s.Roles); unknown != nil {
		bad("%w", unknown)
	} else if s.part != server.Everything && s.Database == "" {
		bad("roles %q: processes with different roles share a PostgreSQL database; name one with database_file, or leave roles at all", s.Roles)
	}
	s.checkStop(bad)
	if s.BaseURL != "" && !isURL(s.BaseURL, "http", "https") {
		bad("base_url %q: use the public address, such as https://tms.example", s.BaseURL)
	}
	s.checkCollector(bad)
	if !slices.Contains([]string{tracking.LegacyReduced, tracking.LegacyOpen, tracking.LegacyClosed}, s.Numbers.Legacy) {
		bad("numbers.legacy %q: use reduced, open or closed", s.Numbers.Legacy)
	}
	if n := s.Timelines.Events; n < 100 || n > cloud.MaxTimelineEvents {
		bad("timelines.events %d: use 100 to %d", n, cloud.MaxTimelineEvents)
	}
	for _, f := range s.Unavailable {
		if f != "contractor_assignment" {
			bad("unavailable %q: only contractor_assignment can be left out", f)
		}
	}
	s.checkBrokers(bad)
	s.checkReleaseKeys(bad)
	s.checkApps(bad)
	s.Push.check("push", bad)
	s.SMS.check("sms", bad)
	s.checkMail(bad)
	s.checkSignIn(bad)
	s.networks = nil
	for _, n := range s.Webhook.AllowNetworks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			bad("webhook.allow_networks %q: use a network such as 10.1.0.0/16", n)
			continue
		}
		s.networks = append(s.networks, p.Masked())
	}
	if slices.Contains(s.Webhook.AllowPorts, 0) {
		bad("webhook.allow_ports: 0 is no port")
	}
	for i, name := range s.Webhook.DenyHosts {
		if name = strings.ToLower(strings.Trim(strings.TrimPrefix(name, "*"), ".")); name == "" || strings.ContainsAny(name, ":/ ") {
			bad("webhook.deny_hosts %q: use a name such as intranet.example", s.Webhook.DenyHosts[i])
		}
		s.Webhook.DenyHosts[i] = name
	}
	s.checkProxy(bad)
	var err error
	if s.overlap, err = time.ParseDuration(s.Webhook.SecretOverlap); err != nil || s.overlap < 0 || s.overlap > maxOverlap {
		bad("webhook.secret_overlap %q: use 0s to 168h", s.Webhook.SecretOverlap)
	}
	return errors.Join(errs...)
}

func (s *settings) checkListeners(bad func(string, ...any)) {
	for name, addr := range map[string]string{"listen": s.Listen, "mqtt.listen": s.MQTT.Listen, "mqtt.tls_listen": s.MQTT.TLSListen, "mqtt.ws_listen": s.MQTT.WSListen,
		"mqtt.wss_listen": s.MQTT.WSSListen, "tls.listen": s.TLS.Listen, "admin.listen": s.Admin.Listen} {
		if addr == "" {
			continue
		}
		if err := checkPort(addr); err != nil {
			bad("%s %q: %w", name, addr, err)
		}
	}
	if s.MQTT.Listen != "" && !s.MQTT.Plain && !cli.IsLoopback(s.MQTT.Listen) {
		bad("mqtt.listen %q: plain MQTT shows device passwords to the network; use mqtt.tls_listen with a certificate, or set mqtt.plain", s.MQTT.Listen)
	}
	if s.MQTT.WSListen != "" && !s.MQTT.Plain && !cli.IsLoopback(s.MQTT.WSListen) {
		bad("mqtt.ws_listen %q: plain WebSocket shows device passwords to the network; use mqtt.wss_listen with a certificate, let a proxy with TLS stand before a loopback address, or set mqtt.plain", s.MQTT.WSListen)
	}
	for name, addr := range map[string]string{"tls.listen": s.TLS.Listen, "mqtt.tls_listen": s.MQTT.TLSListen, "mqtt.wss_listen": s.MQTT.WSSListen} {
		if addr != "" && !s.TLS.hasCertificate() {
			bad("%s: set tls.cert and tls.key, or tls.names for certificates that are fetched", name)
		}
	}
}

// checkReleaseKeys reads the keys that cabinets take updates by.
func (s *settings) checkReleaseKeys(bad func(string, ...any)) {
	for _, text := range s.ReleaseKeys {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			bad("release_keys %q: use the %d bytes of a public key in base64, as \"release key\" prints it", text, ed25519.PublicKeySize)
			continue
		}
		s.releaseKeys = append(s.releaseKeys, key)
	}
}

// checkBrokers fills in the addresses that devices get.
func (s *settings) checkBrokers(bad func(string, ...any)) {
	for _, b := range s.MQTT.Brokers {
		if !isURL(b, "tcp", "mqtt", "ssl", "tls", "mqtts", "ws", "wss") {
			bad("mqtt.brokers %q: use an address such as ssl://tms.example:8883", b)
		}
	}
	if len(s.MQTT.Brokers) > 0 {
		return
	}
	if base, err := url.Parse(s.BaseURL); s.MQTT.TLSListen != "" && err == nil && base.Hostname() != "" {
		if _, port, err := net.SplitHostPort(s.MQTT.TLSListen); err == nil {
			s.MQTT.Brokers = append(s.MQTT.Brokers, "ssl://"+net.JoinHostPort(base.Hostname(), port))
		}
	}
	if s.MQTT.Listen != "" && cli.IsLoopback(s.MQTT.Listen) {
		s.MQTT.Brokers = append(s.MQTT.Brokers, "tcp://"+s.MQTT.Listen)
	}
	if len(s.MQTT.Brokers) == 0 {
		bad("mqtt.brokers: name the addresses at which devices reach this broker, such as ssl://tms.example:8883")
	}
}

// checkApps fills in the addresses that people's apps get: those of the
// brokers, or of the listeners.
func (s *settings) checkApps(bad func(string, ...any)) {
	tcp, ws := []string{"tcp", "mqtt", "ssl", "tls", "mqtts"}, []string{"ws", "wss"}
	if s.MQTT.AppURL != "" && !isURL(s.MQTT.AppURL, tcp...) {
		bad("mqtt.app_url %q: use an address such as ssl://tms.example:8883", s.MQTT.AppURL)
	}
	if s.MQTT.AppWSURL != "" && !isURL(s.MQTT.AppWSURL, ws...) {
		bad("mqtt.app_websocket_url %q: use an address such as wss://tms.example/mqtt", s.MQTT.AppWSURL)
	}
	first := func(schemes []string) string {
		for _, b := range s.MQTT.Brokers {
			if isURL(b, schemes...) {
				return b
			}
		}
		return ""
	}
	s.MQTT.AppURL = cmp.Or(s.MQTT.AppURL, first(tcp))
	base, err := url.Parse(s.BaseURL)
	_, port, _ := net.SplitHostPort(s.MQTT.WSSListen)
	switch s.MQTT.AppWSURL = cmp.Or(s.MQTT.AppWSURL, first(ws)); {
	case s.MQTT.AppWSURL != "":
	case port != "" && err == nil && base.Hostname() != "":
		s.MQTT.AppWSURL = "wss://" + net.JoinHostPort(base.Hostname(), port) + "/mqtt"
	case s.MQTT.WSListen != "" && cli.IsLoopback(s.MQTT.WSListen):
		s.MQTT.AppWSURL = "ws://" + s.MQTT.WSListen + "/mqtt"
	}
}

// hookSettings are those of an address that takes signed posts (Standard Webhooks).
type hookSettings struct {
	URL        string `yaml:"url" json:"url"` // empty: there is none
	SecretFile string `yaml:"secret_file" json:"secret_file"`

	secret string
}

// check reads the secret that posts are signed with.
func (h *hookSettings) check(section string, bad func(string, ...any)) {
	switch {
	case h.URL == "" && h.SecretFile == "":
		return
	case h.URL == "" || h.SecretFile == "":
		bad("%s: set both url and secret_file, or neither", section)
		return
	case !isURL(h.URL, "https", "http"):
		bad("%s.url: use the provider's address, such as https://%s.example/send", section, section)
		return
	}
	if err := cli.CheckSecret(h.SecretFile); err != nil {
		bad("%s.secret_file: %w", section, err)
		return
	}
	raw, err := os.ReadFile(h.SecretFile)
	if err != nil {
		bad("%s.secret_file: %w", section, err)
		return
	}
	h.secret = strings.TrimSpace(string(raw))
	if key, err := signature.StandardKey(h.secret); err != nil {
		bad("%s.secret_file: %w", section, err)
	} else if len(key) < 24 {
		bad("%s.secret_file: the secret has fewer than 24 bytes", section)
	}
}

// checkProxy reads the login that the outgoing proxy asks for. Nothing that is
// said shows the address: a login may have been put there.
func (s *settings) checkProxy(bad func(string, ...any)) {
	if s.Webhook.Proxy == "" {
		if s.Webhook.ProxySecret != "" {
			bad("webhook.proxy_secret_file: set webhook.proxy, or leave both out")
		}
		return
	}
	if _, err := fetch.NewProxy(fetch.ProxyConfig{URL: s.Webhook.Proxy}); err != nil {
		bad("webhook.proxy: %w", err)
		return
	}
	if s.Webhook.ProxySecret == "" {
		return
	}
	if err := cli.CheckSecret(s.Webhook.ProxySecret); err != nil {
		bad("webhook.proxy_secret_file: %w", err)
		return
	}
	raw, err := os.ReadFile(s.Webhook.ProxySecret)
	if err != nil {
		bad("webhook.proxy_secret_file: %w", err)
		return
	}
	if s.proxyLogin = strings.Trim(string(raw), "\r\n"); s.proxyLogin == "" {
		bad("webhook.proxy_secret_file: %s is empty", s.Webhook.ProxySecret)
		return
	}
	if _, err := fetch.NewProxy(fetch.ProxyConfig{URL: s.Webhook.Proxy, Login: s.proxyLogin}); err != nil {
		bad("webhook.proxy_secret_file: %w", err)
	}
}

// maxStop bounds each step of a stop, in all what systems wait before they kill.
const maxStop = 40 * time.Second

// checkStop reads how a stop is announced: unless set, to the balancer of several nodes
// only.
func (s *settings) checkStop(bad func(string, ...any)) {
	if s.Database != "" {
		s.stop = server.Stop{Announce: 3 * time.Second, Drain: 5 * time.Second}
	}
	for _, x := range []struct {
		name, text string
		to         *time.Duration
	}{{"announce", s.Stop.Announce, &s.stop.Announce}, {"drain", s.Stop.Drain, &s.stop.Drain}} {
		if x.text == "" {
			continue
		}
		d, err := time.ParseDuration(x.text)
		if err != nil || d < 0 || d > maxStop {
			bad("stop.%s %q: use 0s to %s", x.name, x.text, maxStop)
			continue
		}
		*x.to = d
	}
}

func isURL(s string, schemes ...string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Hostname() != "" && u.User == nil && slices.Contains(schemes, u.Scheme)
}

// server is what the assembly takes.
func (s settings) server(log *slog.Logger) server.Config {
	return server.Config{Dir: s.Data, KeysFile: s.KeysFile, Objects: s.Objects, Bucket: s.bucket, Backup: s.backup, Database: s.Database, SchemaByCommand: s.Migrate == migrateCommand, Node: s.Node, Address: s.NodeAddress, Part: s.part, Stop: s.stop, BaseURL: s.BaseURL, Prefix: s.MQTT.Prefix, MQTTPlain: s.MQTT.Plain, Brokers: s.MQTT.Brokers, ReleaseKeys: s.releaseKeys, AppURL: s.MQTT.AppURL, AppWebSocketURL: s.MQTT.AppWSURL, Version: cli.Version(), Program: cli.Sibling,
		Mail: s.Mail.server, SignIn: s.providers, PushURL: s.Push.URL, PushSecret: s.Push.secret, SMSURL: s.SMS.URL, SMSSecret: s.SMS.secret,
		WebhookNetworks: s.networks, WebhookPorts: s.Webhook.AllowPorts, WebhookHTTP: s.Webhook.HTTP, WebhookHosts: s.Webhook.DenyHosts, WebhookProxy: s.Webhook.Proxy, WebhookProxyLogin: s.proxyLogin, WebhookOverlap: &s.overlap, LegacyNumbers: s.Numbers.Legacy, TimelineEvents: s.Timelines.Events, OTLPEndpoint: s.OTLPEndpoint, OTLPShare: s.OTLPShare, OTLPHeaders: s.otlpHeaders, Unavailable: s.Unavailable, HideSchema: s.HideSchema,
		Proxies: s.proxies, Admin: server.AdminConfig{Token: s.Admin.token, TLS: s.Admin.TLS}, TLS: s.TLS.server(), RedirectTLS: s.redirect(), Origins: s.Origins, Rates: s.Limits, HTTPConnections: s.Connections.HTTP, MQTTConnections: s.Connections.MQTT, Log: log}
}

// String says what would run; secrets only as set or unset.
func (s settings) String() string {
	database := "SQLite in " + s.Data
	if s.Database != "" {
		database = "set"
	}
	files := cmp.Or(s.Objects, filepath.Join(s.Data, "files"))
	if s.bucket != nil {
		files = "bucket " + s.bucket.Name + " at " + s.bucket.URL
	}
	proxy := ""
	if s.Webhook.Proxy != "" {
		proxy = "; webhooks through " + s.Webhook.Proxy
		if s.proxyLogin != "" {
			proxy += ", login set"
		}
	}
	backups := "none by themselves"
	if s.backup.Every > 0 && (s.backup.Folder != "" || s.backup.Bucket != nil) {
		backups = "every " + s.backup.Every.String() + " to " + s.backup.Folder
		if b := s.backup.Bucket; b != nil {
			backups += "bucket " + b.Name + " at " + b.URL
		}
	}
	return fmt.Sprintf("HTTP at %q, TLS %q; MQTT at %q, TLS %q, WebSocket %q, with TLS %q; broker addresses for devices: %s; administration at %q, token %s; data in %s; files in %s; backups: %s; database: %s%s",
		s.Listen, s.TLS.Listen, s.MQTT.Listen, s.MQTT.TLSListen, s.MQTT.WSListen, s.MQTT.WSSListen, strings.Join(s.MQTT.Brokers, ", "), s.Admin.Listen, s.Admin.tokenState(), s.Data, files, backups, database, proxy)
}
