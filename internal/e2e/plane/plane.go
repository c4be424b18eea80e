// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

// Plane is a running control plane. Its methods are safe for concurrent use;
// those that start or stop processes wait for one another.
type Plane struct {
	name     string
	options  Options
	programs map[string]string
	stages   string // path of KWOK's configuration; only with Pods

	dir       string
	temporary bool
	keep      atomic.Bool

	port      *port
	authority *authority
	token     string
	admin     []byte
	client    *http.Client // the administrator's

	// turn is held by the call that starts or stops processes.
	turn      chan struct{}
	processes []*process // in the order of their start
	stopped   bool
}

// Start builds missing programs, starts a plane, and returns when its API server is ready and, with
// Pods, its nodes are ready. ctx limits the start, not the life of the plane, which ends with Stop.
// If Start fails, no process runs, and Start keeps the directory. If it fails while the programs
// start, the error names the directory. If a program has ended, the error also contains the last
// lines of the program's log.
func Start(ctx context.Context, options Options) (*Plane, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Plane{name: options.Name, options: options, turn: make(chan struct{}, 1)}
	if err := p.find(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := p.prepare(); err != nil {
		p.release()
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := p.startProcesses(ctx); err != nil {
		p.killProcesses()
		p.release()
		return nil, fmt.Errorf("%s: %w\nits files stay in %s", p.name, err, p.dir)
	}
	return p, nil
}

// StartAll starts one plane for each of the options, concurrently, and returns the planes in that
// order. If one plane fails, StartAll stops all other planes; the error joins all failures.
func StartAll(ctx context.Context, options ...Options) ([]*Plane, error) {
	planes := make([]*Plane, len(options))
	problems := make([]error, len(options))
	var group sync.WaitGroup
	for i, o := range options {
		group.Go(func() { planes[i], problems[i] = Start(ctx, o) })
	}
	group.Wait()
	if err := errors.Join(problems...); err != nil {
		started := slices.DeleteFunc(planes, func(p *Plane) bool { return p == nil })
		return nil, errors.Join(err, StopAll(context.WithoutCancel(ctx), started...))
	}
	return planes, nil
}

// StopAll stops all planes at the same time; see [Plane.Stop].
func StopAll(ctx context.Context, planes ...*Plane) error {
	problems := make([]error, len(planes))
	var group sync.WaitGroup
	for i, p := range planes {
		group.Go(func() { problems[i] = p.Stop(ctx) })
	}
	group.Wait()
	return errors.Join(problems...)
}

// Name returns the plane's name.
func (p *Plane) Name() string { return p.name }

// Server returns the URL of the API server, the same for the plane's whole life.
func (p *Plane) Server() string { return "https://" + p.port.address() }

// Logs returns the directory that holds one log per program.
func (p *Plane) Logs() string { return filepath.Join(p.dir, "logs") }

// Keep makes Stop keep the directory with the logs.
func (p *Plane) Keep() { p.keep.Store(true) }

// find locates or builds the programs that the options need.
func (p *Plane) find(ctx context.Context) error {
	apiServer := build.APIServer
	if p.options.AnyGroup {
		apiServer = build.AnyGroupAPIServer
	}
	names := []string{build.Etcd, apiServer}
	if p.options.Controllers {
		names = append(names, build.ControllerManager, build.Scheduler)
	}
	if p.options.Pods {
		names = append(names, build.KWOK)
		stages, err := build.Stages(ctx)
		if err != nil {
			return err
		}
		p.stages = stages
	}
	programs, err := build.Programs(ctx, names...)
	if err != nil {
		return err
	}
	programs[build.APIServer] = programs[apiServer]
	p.programs = programs
	return nil
}

// prepare makes everything that lasts from Start to Stop: the directory, the port, the identities
// and the configuration files of the programs.
func (p *Plane) prepare() (err error) {
	if p.dir = p.options.Dir; p.dir == "" {
		p.temporary = true
		if p.dir, err = os.MkdirTemp("", "atoll-"+p.name+"-"); err != nil {
			return err
		}
	} else if p.dir, err = filepath.Abs(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(p.Logs(), 0o755); err != nil {
		return err
	}
	if p.port, err = reservePort(); err != nil {
		return err
	}
	if p.authority, err = newAuthority(p.name); err != nil {
		return err
	}
	p.token = rand.Text()
	if p.admin, err = p.kubeconfig(&api.AuthInfo{Token: p.token}); err != nil {
		return err
	}
	if p.client, err = rest.HTTPClientFor(p.Config()); err != nil {
		return err
	}
	return p.writeFiles()
}

// api returns the administrator's client.
func (p *Plane) api() (dynamic.Interface, error) {
	return dynamic.NewForConfigAndClient(p.Config(), p.client)
}

// writeFiles writes the programs' configuration files into the plane's directory.
func (p *Plane) writeFiles() error {
	serving, err := p.authority.server()
	if err != nil {
		return fmt.Errorf("signing the API server's certificate: %w", err)
	}
	_, accounts, err := newKey()
	if err != nil {
		return fmt.Errorf("making the key of service account tokens: %w", err)
	}
	files := map[string][]byte{
		"ca.crt":              p.authority.pem,
		"ca.key":              p.authority.keyPEM,
		"apiserver.crt":       serving.certificate,
		"apiserver.key":       serving.key,
		"serviceaccounts.key": accounts,
		"tokens.csv":          []byte(p.token + ",admin,admin,\"system:masters\"\n"),
		"kubeconfig":          p.admin,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// release frees the resources that prepare took, except the directory.
func (p *Plane) release() {
	if p.port != nil {
		p.port.release()
	}
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
}
