package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/ctl"
)

// limitCommand reads and changes the limits in etcd that pacers follow.
type limitCommand struct {
	etcdFlags

	Get    getLimitCommand    `cmd:"" help:"Print the limits of all providers, or the limit of one provider with its instances."`
	Set    setLimitCommand    `cmd:"" help:"Set the limit of a provider. Fail if another operator changes it at the same time."`
	Watch  watchLimitCommand  `cmd:"" help:"Print a provider's limit now and at each change, until Ctrl-C."`
	Delete deleteLimitCommand `cmd:"" help:"Delete the limit of a provider."`
}

// etcdFlags has the fields of ctl.EtcdFlags, with the tags of the command line parser.
type etcdFlags struct {
	Etcd []string `help:"etcd's client addresses, separated by commas. Use https:// for TLS." default:"127.0.0.1:2379" env:"HEADGATE_ETCD"`

	EtcdCA   string `help:"File with the CA certificates for etcd." name:"etcd-ca" env:"HEADGATE_ETCD_CA" placeholder:"FILE"`
	EtcdCert string `help:"File with the client certificate for etcd." env:"HEADGATE_ETCD_CERT" placeholder:"FILE"`
	EtcdKey  string `help:"File with the key of the client certificate." env:"HEADGATE_ETCD_KEY" placeholder:"FILE"`

	EtcdUser         string `help:"User name, if etcd has authentication enabled." env:"HEADGATE_ETCD_USER" placeholder:"NAME"`
	EtcdPasswordFile string `help:"File with the user's password." env:"HEADGATE_ETCD_PASSWORD_FILE" placeholder:"FILE"`

	Prefix  string        `help:"Prefix of the keys of the limits in etcd." default:"/headgate/pace/" env:"HEADGATE_ETCD_PREFIX"`
	Timeout time.Duration `help:"Timeout of each request to etcd." default:"5s"`
}

// BeforeReset hides --admin in the help of this command and refuses it. The limits are in
// etcd, so that the address of an instance has no effect here.
func (*limitCommand) BeforeReset(parsed *commandline.Parsed) error {
	for _, element := range parsed.Path {
		if element.Flag != nil && element.Flag.Name == "admin" {
			return errors.New("--admin is the address of an instance, and limits are in etcd: leave it out, and name etcd with --etcd")
		}
	}
	for _, flag := range parsed.Flags() {
		flag.Hidden = flag.Hidden || flag.Name == "admin"
	}
	return nil
}

func (l *limitCommand) Validate() error {
	flags := ctl.EtcdFlags(l.etcdFlags)
	return flags.Validate()
}

// limits returns a client of the etcd that the flags name.
func (c *ctlCommand) limits(stdout io.Writer, stderr errorWriter) *ctl.Limits {
	return &ctl.Limits{Etcd: ctl.EtcdFlags(c.Limit.etcdFlags), JSON: c.JSON, Out: stdout, Errors: stderr}
}

type getLimitCommand struct {
	Provider string `arg:"" optional:"" help:"Name of the provider. The default is all providers."`
}

// Validate refuses an invalid provider name.
func (g getLimitCommand) Validate() error {
	if g.Provider == "" {
		return nil
	}
	return ctl.CheckProvider(g.Provider)
}

func (g getLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.limits(stdout, stderr).Get(ctx, g.Provider)
}

type setLimitCommand struct {
	Provider   string        `arg:"" help:"Name of the provider."`
	Limit      string        `arg:"" help:"Units and a window for all instances together, like 50000/s or 10/1m."`
	Balance    string        `help:"How instances share the limit: even, which is the default." placeholder:"even"`
	IfRevision *int64        `help:"Set it only if the limit has this revision; 0 means that no limit exists." placeholder:"N"`
	AllowZero  bool          `help:"Allow a limit of 0, which stops all calls to the provider."`
	Wait       time.Duration `help:"How long to wait until the limit is in force; 0s does not wait." default:"30s"`
}

func (c setLimitCommand) Validate() error {
	set := ctl.SetLimit(c)
	return set.Validate()
}

// Run sets the limit and waits until it is in force.
func (c setLimitCommand) Run(ctx context.Context, to *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	set := ctl.SetLimit(c)
	return to.limits(stdout, stderr).Set(ctx, &set)
}

type watchLimitCommand struct {
	Provider string `arg:"" help:"Name of the provider."`
}

// Validate refuses an invalid provider name.
func (w watchLimitCommand) Validate() error { return ctl.CheckProvider(w.Provider) }

// Run prints changes until ctx ends.
func (w watchLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.limits(stdout, stderr).Watch(ctx, w.Provider)
}

type deleteLimitCommand struct {
	Provider   string `arg:"" help:"Name of the provider."`
	IfRevision *int64 `help:"Delete it only if the limit has this revision." placeholder:"N"`
}

// Validate refuses an invalid provider name or revision.
func (d deleteLimitCommand) Validate() error {
	if err := ctl.CheckProvider(d.Provider); err != nil {
		return err
	}
	return ctl.CheckRevision(d.IfRevision)
}

func (d deleteLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.limits(stdout, stderr).Delete(ctx, d.Provider, d.IfRevision)
}
