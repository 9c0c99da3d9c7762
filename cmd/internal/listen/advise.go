package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// Advise adds advice to the error of a socket that could not be opened, if the cause is known.
func Advise(err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "stop the process that uses the address, or choose another address; " + holder(err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "this machine does not have the address: write an address that the command ip address lists, or :PORT for all addresses"
	case errors.Is(err, fs.ErrPermission):
		advice = permission(err)
	case errors.Is(err, fs.ErrNotExist):
		advice = "create the folder, or choose another folder"
	case errors.Is(err, syscall.EROFS):
		advice = "choose a path on a writable file system"
	case errors.Is(err, syscall.EAFNOSUPPORT):
		advice = "this machine does not support this IP version: write an address of the other version"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}

// holder returns the command that shows which process uses an address.
func holder(err error) string {
	if op, found := errors.AsType[*net.OpError](err); found {
		if at, isTCP := op.Addr.(*net.TCPAddr); isTCP {
			return fmt.Sprintf("ss -ltnp 'sport = :%d' shows the process", at.Port)
		}
		if at, isUnix := op.Addr.(*net.UnixAddr); isUnix {
			return "ss -lxp src " + at.Name + " shows the process"
		}
	}
	return "ss -ltnp shows the process"
}

// permission returns advice for a privileged port or for a folder.
func permission(err error) string {
	op, found := errors.AsType[*net.OpError](err)
	if found {
		if at, isTCP := op.Addr.(*net.TCPAddr); isTCP && at.Port < 1024 {
			return "ports below 1024 need a privilege: use port 1024 or higher, or grant CAP_NET_BIND_SERVICE"
		}
	}
	return "allow the user of the process to write to the folder"
}

// advise calls Advise and adds this package's name.
func advise(err error) error { return fmt.Errorf("listen: %w", Advise(err)) }
