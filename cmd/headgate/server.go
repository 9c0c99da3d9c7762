package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/envoy/folder"
	"github.com/headgate/headgate/internal/config"
)

type serverCommand struct {
	configFlag
	mergeFlag

	EnvoyConfig string `help:"Also serve and follow a folder of envoyproxy/ratelimit files." placeholder:"DIR" env:"HEADGATE_ENVOY_CONFIG"`
	EnvoyEnv    bool   `help:"Read the variables of envoyproxy/ratelimit in place of a configuration."`
}

// Help is the text of headgate server --help.
func (serverCommand) Help() string {
	return "The configuration needs a section server, like server: {grpc: 127.0.0.1:8081, http: 127.0.0.1:8080}. Both " +
		"listeners are on loopback unless the configuration says otherwise. The gRPC listener has the health service " +
		"(names ratelimit and \"\"), and the HTTP listener has GET /healthcheck. The name ratelimit and /healthcheck are " +
		"unhealthy until the store was reached once. SIGHUP reloads the configuration. SIGTERM turns the health to not " +
		"serving, and drains within shutdown_timeout. With --envoy-env, or under the name ratelimit and without arguments, the " +
		"command takes the place of envoyproxy/ratelimit: it reads its environment variables, and listens on its ports."
}

// Run serves until it receives a signal, and then drains. SIGHUP reloads the configuration.
func (s serverCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error {
	if s.EnvoyEnv {
		if s.EnvoyConfig != "" {
			return configError{errors.New("server: --envoy-env reads RUNTIME_ROOT: leave out --envoy-config, or leave out --envoy-env")}
		}
		if s.Config != defaultConfig {
			return configError{fmt.Errorf(
				"server: --envoy-env reads no configuration file: leave out --config %s, or leave out --envoy-env", s.Config)}
		}
		own, err := envoyServing()
		if err != nil {
			return err
		}
		return own.run(ctx, stdout, stderr, parsed)
	}
	own := serving{configFlag: s.configFlag, load: s.loadServer, server: true}
	if s.EnvoyConfig != "" {
		first, err := s.loadServer()
		if err != nil {
			return err
		}
		own.load = func() (*config.Config, error) { // Standard input can be read only once.
			if c := first; c != nil {
				first = nil
				return c, nil
			}
			return s.loadServer()
		}
		source, err := folder.New(folder.Config{
			Root: s.EnvoyConfig, IgnoreDotFiles: true, Merge: s.Merge, CalendarMonths: first.EnvoyCalendarMonths,
		})
		if err != nil {
			return configError{err}
		}
		own.domains = source
	}
	return own.run(ctx, stdout, stderr, parsed)
}

// loadServer reads a configuration that must have the section server.
func (s serverCommand) loadServer() (*config.Config, error) {
	c, err := s.load()
	if err == nil && c.Server == nil {
		return nil, configError{fmt.Errorf(
			"server: %s has no section server: write server: {grpc: 127.0.0.1:8081, http: 127.0.0.1:8080}", s.Config)}
	}
	return c, err
}
