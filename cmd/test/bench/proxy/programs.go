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

// Build compiles Headgate, the bare proxy and the upstream with the same toolchain and flags,
// and makes a certificate.
func Build(ctx context.Context) (*Programs, error) {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	p := &Programs{dir}
	if err := errors.Join(passFileLimit(), p.build(ctx)); err != nil {
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

func (p *Programs) build(ctx context.Context) error {
	headgate, bench, err := compile.Modules(ctx)
	if err != nil {
		return err
	}
	err = compile.Into(ctx, p.dir, compile.Program{In: headgate, Path: "./cmd/headgate"},
		compile.Program{In: bench, Path: "./cmd/bareproxy"}, compile.Program{In: bench, Path: "./cmd/upstream"})
	if err != nil {
		return err
	}
	return writeCertificate(p.certificate())
}

// certificate returns the path of a PEM file with a certificate for 127.0.0.1 and its key.
func (p *Programs) certificate() string { return filepath.Join(p.dir, "certificate.pem") }

// withSides starts an upstream and the sides on loopback, calls measure, and ends all
// processes.
func (p *Programs) withSides(ctx context.Context, sides []side, measure func([]*process) error) error {
	upstream, err := start(ctx, "upstream", "", p.dir, filepath.Join(p.dir, "upstream"))
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
