// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

// goWrapper replaces the command go. It builds the program of "go run ./FOLDER" and "go -C FOLDER run ." in the checkout and
// runs it in the working directory, so that the commands of a page write no files into the checkout.
const goWrapper = `#!/bin/bash
set -e
case "$1 $2" in
run\ ./*) folder=$2; shift 2 ;;
-C\ *) folder=$2; [ "$3 $4" = "run ." ] || exec %[1]s "$@"; shift 4 ;;
*) exec %[1]s "$@" ;;
esac
program="%[2]s/$(basename "$folder")"
%[1]s -C "$ATOLL/$folder" build -o "$program" .
exec "$program" "$@"
`

// readmes is a shell in a directory with the files that the pages name.
type readmes struct {
	*testing.T
	*shell

	dir             string
	plane, eu, edge *plane.Plane
}

// TestReadmes enters the commands of the pages of programs and examples: those with kubectl, and those that run an example.
// A command that does not end by itself runs until it has the effect that the page states.
func TestReadmes(t *testing.T) {
	sh, dir := enter(t)
	planes := planetest.NewAll(t, plane.Options{Name: "plane", Controllers: true}, plane.Options{Name: "eu"}, plane.Options{Name: "us"}, plane.Options{Name: "cluster"})
	r := &readmes{t, sh, dir, planes[0], planes[1], planes[3]}
	checkout := filepath.Join("..", "..", "..", "..")
	for _, folder := range []string{"cmd", "examples", "config"} {
		target, err := filepath.Abs(filepath.Join(checkout, folder))
		require.NoError(t, err)
		require.NoError(t, os.Symlink(target, filepath.Join(dir, folder)))
	}
	for i, names := range [][]string{{"plane", "upstream", "host"}, {"eu", "eu-west-1"}, {"us"}, {"cluster"}} {
		for _, name := range names {
			r.write(name+".kubeconfig", string(planes[i].Kubeconfig()))
		}
	}
	// The peer eu of this ring is not the one that the manager gets later: a peer belongs to one ring.
	r.write("peers.yaml", "peers:\n- {name: eu, kubeconfig: cluster.kubeconfig}\n- {name: us, kubeconfig: us.kubeconfig}\n")
	real, err := r.command("command -v go")
	require.NoError(t, err)
	r.write("tools/go", fmt.Sprintf(goWrapper, strings.TrimSpace(real), filepath.Join(dir, "tools")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "tools", "go"), 0o700))
	r.must(`GOBIN="` + filepath.Join(dir, "tools") + `" ` + strings.TrimSpace(real) + ` -C "$ATOLL/cmd/atollctl" install . && export KUBECONFIG=` + filepath.Join(dir, "plane.kubeconfig"))

	t.Run("atollctl", r.atollctl)
	t.Run("credentials", r.credentials)
	t.Run("manager", r.manager)
	t.Run("examples", r.examples)
}

func (r *readmes) write(name, text string) {
	r.Helper()
	require.NoError(r, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

// command enters a command, and returns its output and an error if it fails.
func (r *readmes) command(command string) (string, error) {
	output, code, err := r.run(command)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d:\n%s", command, code, output)
	}
	return output, err
}

func (r *readmes) must(command string) string {
	r.Helper()
	output, err := r.command(command)
	require.NoError(r, err)
	return output
}

// eventually enters a command until it succeeds and its output has the text.
func (r *readmes) eventually(t *testing.T, command, text string) {
	t.Helper()
	planetest.Eventually(t, 3*time.Minute, command, func(context.Context) error {
		output, err := r.command(command)
		if err == nil && !strings.Contains(output, text) {
			err = errors.New(output)
		}
		return err
	})
}

// block returns the only block of a page, in a language, that has the text.
func block(t *testing.T, page, language, text string) string {
	t.Helper()
	var found []string
	for _, b := range docpage.Blocks(t, filepath.Join("..", "..", "..", "..", page)) {
		if b.Language == language && strings.Contains(b.Text, text) {
			found = append(found, b.Text)
		}
	}
	require.Len(t, found, 1, "%s: blocks %s with %s", page, language, text)
	return found[0]
}

// background enters the lines of a block whose last command does not end. It returns a func that ends this command.
func (r *readmes) background(t *testing.T, commands string) (end func()) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(commands), "\n")
	last := lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		r.must(line)
	}
	r.must(last + " > background.log 2>&1 & pid=$!")
	return func() {
		t.Helper()
		output, err := r.command("kill $pid; wait $pid; true; cat background.log")
		require.NoError(t, err)
		t.Log(output)
	}
}

// atollctl enters the commands of its page that use kubectl.
func (r *readmes) atollctl(t *testing.T) {
	r.T = t
	const page = "cmd/atollctl/README.md"
	r.write("acme.yaml", block(t, page, "yaml", "kind: Account"))
	r.write("db-1.yaml", block(t, page, "yaml", "kind: ServiceCluster"))
	r.all(t, block(t, page, "sh", "kubectl create clusterrolebinding"))
	r.must("atollctl --kubeconfig plane=plane.kubeconfig install-crds")
	r.all(t, block(t, page, "sh", "atollctl cluster token"))
	require.FileExists(t, filepath.Join(r.dir, "edge.token"))
	r.all(t, block(t, page, "sh", "rbac --as alice"))
}

// all enters each line of a block on its own, and requires that each succeeds. A heredoc counts as one line.
func (r *readmes) all(t *testing.T, commands string) {
	t.Helper()
	rest := commands
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if strings.Contains(line, "<<END") {
			body, after, ok := strings.Cut(rest, "\nEND\n")
			require.True(t, ok, line)
			line, rest = line+"\n"+body+"\nEND", after
		}
		if text := strings.TrimSpace(line); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		output, code, err := r.run("set -o pipefail\n" + line)
		require.NoError(t, err)
		require.Zero(t, code, "%s\n%s", line, output)
		t.Logf("%s\n%s", line, output)
	}
}

// credentials makes a kubeconfig for a ServiceAccount, and uses it.
func (r *readmes) credentials(t *testing.T) {
	r.T = t
	r.all(t, block(t, "docs/credentials.md", "sh", "kubectl create serviceaccount"))
	require.Contains(t, r.must("kubectl --kubeconfig atoll.kubeconfig auth whoami"), "system:serviceaccount:atoll:atoll")
	require.Contains(t, r.must("atollctl --kubeconfig plane=atoll.kubeconfig doctor || true"), "bearer token: valid until")
}

// manager applies the manifests of the programs, runs a manager, and follows its page until a ServiceCluster is Ready and a
// cluster has joined.
func (r *readmes) manager(t *testing.T) {
	r.T = t
	const page = "cmd/atoll-manager/README.md"
	r.must("atollctl --kubeconfig plane=plane.kubeconfig --kubeconfig eu=eu.kubeconfig install-crds && kubectl create namespace kubecarrier-system")
	r.all(t, block(t, "cmd/atoll-gateway/README.md", "sh", "kubectl apply -k"))
	r.all(t, block(t, page, "sh", "kubectl apply -k"))
	r.must("kubectl -n kubecarrier-system delete deployment --all")
	r.write("objects.yaml", block(t, page, "yaml", "kind: KubeCarrier"))
	r.must("kubectl -n kubecarrier-system create secret generic eu --from-file=kubeconfig=eu.kubeconfig && kubectl apply -f objects.yaml")
	r.write("manager.yaml", strings.ReplaceAll(`{apiVersion: manager.atoll.dev/v1alpha1, kind: ManagerConfiguration, central: {kubeconfigFile: plane.kubeconfig}, fanout: {sweepInterval: 2s, adoptApplied: true},
		serviceClusters: {probeInterval: 2s, allowAddresses: [127.0.0.0/8]}, clusters: {}, health: {address: "127.0.0.1:0"}}`, "plane.kubeconfig", filepath.Join(r.dir, "plane.kubeconfig")))
	process.Start(t, "manager", []string{"POD_NAME=a"}, process.Build(t, "../../../../cmd/atoll-manager"), "--config="+filepath.Join(r.dir, "manager.yaml"))
	r.must("kubectl wait peer eu --for=condition=Ready --timeout=3m")
	r.must("echo '{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: loodse}, spec: {roles: [Provider]}}' | kubectl apply -f -")
	r.must("kubectl wait account.catalog.kubecarrier.io loodse --for=condition=Ready --timeout=3m")

	r.must("export KUBECONFIG=" + filepath.Join(r.dir, "eu.kubeconfig"))
	r.must("echo '{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {name: eu-west-1, namespace: loodse}, spec: {}}' | kubectl apply -f -")
	r.all(t, block(t, page, "sh", "kubectl -n loodse wait"))
	r.eventually(t, "kubectl -n loodse get events", "ClusterReady")
	r.must("export KUBECONFIG=" + filepath.Join(r.dir, "plane.kubeconfig"))
	r.eventually(t, "kubectl describe peer eu", "PeerReady")

	end := r.background(t, block(t, page, "sh", "-join edge.token"))
	defer end()
	planetest.Eventually(t, 5*time.Minute, "the cluster has joined", func(context.Context) error {
		_, err := os.Stat(filepath.Join(r.dir, "edge.kubeconfig"))
		return err
	})
}

// examples runs the examples whose pages run them against clusters.
func (r *readmes) examples(t *testing.T) {
	r.T = t
	const page = "examples/syncer/README.md"
	for _, b := range []struct{ text, done, want string }{
		{"config/crd/workload.kcp.io_synctargets.yaml", "kubectl get synctarget my-cluster -o yaml", "lastSyncerHeartbeatTime"},
		{"-upsync configmaps", "kubectl --kubeconfig cluster.kubeconfig get configmap hello -o yaml", "greeting: hello"},
		{"-unscheduled 30s", "kubectl --kubeconfig cluster.kubeconfig get configmap hello -o yaml", "greeting: hello"},
	} {
		end := r.background(t, block(t, page, "sh", b.text))
		r.must("kubectl delete configmap hello --ignore-not-found; kubectl create configmap hello --from-literal=greeting=hello --dry-run=client -o yaml | " +
			"kubectl label --local -f - workloads.kcp.io/cluster=my-cluster -o yaml | kubectl apply -f -")
		r.eventually(t, b.done, b.want)
		end()
	}

	for _, peer := range []string{"cluster", "us"} { // those of peers.yaml
		r.must("export KUBECONFIG=" + filepath.Join(r.dir, peer+".kubeconfig"))
		r.all(t, block(t, "examples/operator/README.md", "sh", "database-operator --clusterrole"))
	}
	end := r.background(t, block(t, "examples/operator/README.md", "sh", "run . -kubeconfig"))
	r.must("echo '{apiVersion: operator.example.com/v1, kind: Database, metadata: {name: orders, namespace: default}, spec: {size: 10Gi}}' | kubectl apply -f -")
	r.must("kubectl -n default wait database orders --for=condition=Ready --timeout=3m")
	r.must("kubectl --kubeconfig cluster.kubeconfig -n default get secret orders")
	end()
	r.must("export KUBECONFIG=" + filepath.Join(r.dir, "plane.kubeconfig"))
	end = r.background(t, block(t, "examples/controllermanager/README.md", "sh", "run . -config"))
	r.eventually(t, "cat background.log", "Replicas share the keys")
	end()
}
