package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/headgate/headgate/cmd/test/bench/compile"
)

// Programs is a temporary folder with the programs that this package builds. Call Remove
// when the scenes have ended.
type Programs struct{ dir string }

// Build compiles Headgate, the upstreams and the proxies of this module with the same toolchain and
// flags, and makes a certificate. before is a commit whose Headgate takes part, or "".
func Build(ctx context.Context, before string) (*Programs, error) {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	p := &Programs{dir}
	if err := errors.Join(passFileLimit(), p.build(ctx, before)); err != nil {
		p.Remove()
		return nil, err
	}
	return p, nil
}

// passFileLimit lets child processes open as many files as this process. Otherwise Go gives
// them the user's limit, which is often too small for 2,000 connections.
func passFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("proxy: read the limit of open files: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("proxy: set the limit of open files: %w", err)
	}
	return nil
}

// Remove deletes the folder.
func (p *Programs) Remove() {
	_ = os.RemoveAll(p.dir) // Files that cannot be removed stay in the system's temporary folder.
}

func (p *Programs) build(ctx context.Context, before string) error {
	headgate, bench, err := compile.Modules(ctx)
	if err != nil {
		return err
	}
	programs := []compile.Program{{In: headgate, Path: "./cmd/headgate", Flags: compile.Released()}}
	for _, path := range []string{"./cmd/bareproxy", "./cmd/emptycall", "./cmd/floor", "./cmd/upstream"} {
		programs = append(programs, compile.Program{In: bench, Path: path})
	}
	if err := compile.Into(ctx, p.dir, programs...); err != nil {
		return err
	}
	if before != "" {
		if err := compile.Commit(ctx, headgate, before, filepath.Join(p.dir, folderBefore), "./cmd/headgate"); err != nil {
			return err
		}
	}
	return writeCertificate(p.certificate())
}

// certificate returns the path of a PEM file with a certificate for 127.0.0.1 and its key.
func (p *Programs) certificate() string { return filepath.Join(p.dir, "certificate.pem") }

// upstream starts the service of a load.
func (p *Programs) upstream(ctx context.Context, l load) (*process, error) {
	if !l.grpc {
		return start(ctx, "upstream", "", p.dir, filepath.Join(p.dir, "upstream"))
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	started, err := start(ctx, "emptycall", "http://"+addresses[0], p.dir, filepath.Join(p.dir, "emptycall"), addresses[0])
	if err != nil {
		return nil, err
	}
	if err := started.listens(ctx); err != nil {
		started.stop()
		return nil, err
	}
	return started, nil
}

// withSides starts an upstream and the sides on loopback, calls measure, and ends all
// processes.
func (p *Programs) withSides(ctx context.Context, l load, sides []side, measure func([]*process) error) error {
	upstream, err := p.upstream(ctx, l)
	if err != nil {
		return err
	}
	defer upstream.stop()
	var started []*process
	defer func() {
		for _, s := range started {
			s.stop()
		}
	}()
	for _, s := range sides {
		process, err := p.start(ctx, s, strings.TrimPrefix(upstream.url, "http://"))
		if err != nil {
			return err
		}
		started = append(started, process)
	}
	return measure(started)
}
