// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// A kubeconfig names a server in memory by a host of its own, https://NAME.RUN.invalid. A client
// that has neither TLS options nor a Dial function uses http.DefaultTransport, which router
// replaces. router finds the server by the host of the request, and the faults of the calling loop
// by the context of the request.

// hosted is a server that kubeconfigs can reach.
type hosted struct {
	*regiontest.Server

	name, host string
	journals   *journals
}

// Close closes the server. Kubeconfigs no longer reach it.
func (h hosted) Close() {
	hosts.Delete(h.host)
	h.Server.Close()
}

var (
	hosts sync.Map // host to hosted server
	runs  atomic.Int64
	route = sync.OnceFunc(func() { http.DefaultTransport = router{http.DefaultTransport} })
)

// host makes a server reachable by kubeconfigs.
func host(name string, s *regiontest.Server, run int64) perturb.Server {
	route()
	h := hosted{Server: s, name: name, host: fmt.Sprintf("%s.%d.invalid", name, run), journals: &journals{}}
	hosts.Store(h.host, h)
	return h
}

// Config implements perturb.Server. The Host of the result is the host that kubeconfigs name.
func (h hosted) Config() *rest.Config {
	config := h.Server.Config()
	config.Host = "https://" + h.host
	return config
}

type accessKey struct{}

// reaching returns a context. A request that has this context and goes to the server of a
// kubeconfig meets the faults of the loop to which access belongs.
func reaching(ctx context.Context, access perturb.Access) context.Context {
	return context.WithValue(ctx, accessKey{}, access)
}

// router replaces http.DefaultTransport.
type router struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r router) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Host, ".invalid") {
		return r.next.RoundTrip(req)
	}
	found, ok := hosts.Load(req.URL.Host)
	if !ok {
		return nil, fmt.Errorf("no such host: %s", req.URL.Host)
	}
	server := found.(hosted)
	config := server.Config() // discovery has no context, and no plan disturbs it
	if access, ok := req.Context().Value(accessKey{}).(perturb.Access); ok {
		config = access(server.name)
	}
	if config.Transport == nil {
		return nil, errors.New("the server has no transport")
	}
	next := config.Transport
	if config.WrapTransport != nil {
		next = config.WrapTransport(next)
	}
	return next.RoundTrip(req)
}

// kubeconfig returns a kubeconfig with a token for a server.
func kubeconfig(access perturb.Access, server, token string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": %q}}],
"users": [{"name": "u", "user": {"token": %q}}]}`, access(server).Host, token)
}

// secret is a step in which a user writes a Secret with a kubeconfig of a server.
func secret(step, plane, namespace, name, server, token string) perturb.Step {
	return perturb.Step{Name: step, Do: func(ctx context.Context, access perturb.Access) error {
		data := base64.StdEncoding.EncodeToString([]byte(kubeconfig(access, server, token)))
		return applyTo(ctx, access(plane), fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: %s}, data: {kubeconfig: %s}}", namespace, name, data))
	}}
}

// ofOneRun is a field that differs between runs: the data of Secrets with kubeconfigs, whose hosts
// are different in each run.
var ofOneRun = perturb.Field{Resource: "secrets", Path: "data"}
