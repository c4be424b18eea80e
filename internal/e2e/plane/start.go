// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"fmt"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

// These are unix sockets in the directory in which etcd and kube-apiserver run. etcd requires the
// form host:port, which here is the file name of the socket.
const (
	etcdURL     = "unix://etcd:1"
	etcdPeerURL = "unix://etcd-peer:1"
)

// startProcesses starts all programs of the plane and waits until it is ready.
func (p *Plane) startProcesses(ctx context.Context) error {
	if err := p.run(build.Etcd, etcdArguments()...); err != nil {
		return err
	}
	if err := p.run(build.APIServer, p.apiServerArguments()...); err != nil {
		return err
	}
	if err := p.awaitReady(ctx); err != nil {
		return err
	}
	if !p.options.Controllers {
		return nil
	}
	if err := p.run(build.ControllerManager, controllerManagerArguments()...); err != nil {
		return err
	}
	if err := p.run(build.Scheduler, schedulerArguments()...); err != nil {
		return err
	}
	if p.options.Pods {
		if err := p.run(build.KWOK, "--kubeconfig=kubeconfig", "--manage-all-nodes=true", "--config="+p.stages); err != nil {
			return err
		}
		if err := p.createNodes(ctx); err != nil {
			return err
		}
	}
	return p.awaitControllers(ctx)
}

func (p *Plane) run(name string, args ...string) error {
	process, err := run(p.dir, p.Logs(), name, p.programs[name], args...)
	if err != nil {
		return err
	}
	p.processes = append(p.processes, process)
	return nil
}

func etcdArguments() []string {
	return []string{
		"--data-dir=etcd-data",
		"--unsafe-no-fsync",
		"--log-level=warn",
		"--listen-client-urls=" + etcdURL,
		"--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + etcdPeerURL,
		"--initial-advertise-peer-urls=" + etcdPeerURL,
		"--initial-cluster=default=" + etcdPeerURL,
	}
}

func (p *Plane) apiServerArguments() []string {
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.port.number),
		"--permit-port-sharing=true",
		"--tls-cert-file=apiserver.crt",
		"--tls-private-key-file=apiserver.key",
		"--client-ca-file=ca.crt",
		"--token-auth-file=tokens.csv",
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=serviceaccounts.key",
		"--service-account-signing-key-file=serviceaccounts.key",
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if !p.options.Controllers {
		// The plugin requires that each pod has a service account, and no controller creates
		// service accounts here.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return append(args, p.options.APIServerFlags...)
}

func controllerManagerArguments() []string {
	return append(controllerArguments(),
		// KWOK's nodes send no heartbeats. With the default grace period, the nodes would count as
		// unhealthy for a moment after a minute, and their pods would stay unready for ever.
		"--node-monitor-grace-period=24h",
		"--horizontal-pod-autoscaler-sync-period=2s", // 15 seconds by default
		"--root-ca-file=ca.crt",
		"--cluster-signing-cert-file=ca.crt",
		"--cluster-signing-key-file=ca.key",
		"--service-account-private-key-file=serviceaccounts.key")
}

func schedulerArguments() []string { return controllerArguments() }

// controllerArguments returns the common arguments of kube-controller-manager and kube-scheduler.
// They disable the program's own server, so that the program needs no port, and raise its
// client-side rate limit.
func controllerArguments() []string {
	return []string{
		"--kubeconfig=kubeconfig",
		"--authentication-skip-lookup=true",
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}
