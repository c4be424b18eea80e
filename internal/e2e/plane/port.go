// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is a loopback port. This process keeps a socket bound to it, without listening, for as long
// as the plane exists. kube-apiserver binds the port as well, with --permit-port-sharing. The
// socket keeps other processes from the port before the API server starts and while it is down. A
// bound socket that does not listen gets no connections.
type port struct {
	number int
	fd     int
}

func reservePort() (*port, error) {
	// No process may start before CloseOnExec: it would inherit the socket.
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	p := &port{fd: fd}
	if err := p.bind(); err != nil {
		p.release()
		return nil, fmt.Errorf("reserving a port on 127.0.0.1: %w", err)
	}
	return p, nil
}

func (p *port) bind() error {
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(p.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	name, err := unix.Getsockname(p.fd)
	if err != nil {
		return err
	}
	address, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return fmt.Errorf("bound to an address of type %T", name)
	}
	p.number = address.Port
	return nil
}

func (p *port) address() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number))
}

func (p *port) release() { _ = unix.Close(p.fd) }
