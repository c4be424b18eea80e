// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// One peer cannot take part in an operation, for each of several causes: its kubeconfig is wrong,
// it is frozen or down, a webhook does not answer, or an object has a finalizer. The output of
// atollctl then names the peer and the cause, and the exit code agrees with the objects in the
// planes.
func TestCausesOnRealServers(t *testing.T) {
	t.Parallel()
	planes := own(t)
	c := &causes{ring: ctltest.New(t, planes, len(planes)), acme: "acme", target: planes[1], away: planes[2]}
	c.ring.Shell("first").Succeed(t, "account", "add", "-f", c.ring.File(t, "{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: acme}, spec: {roles: [Tenant]}}"))
	t.Run("kubeconfig", c.kubeconfig)
	t.Run("doctor", c.doctor)
	t.Run("frozen", c.frozen)
	t.Run("webhook", c.webhook)
	t.Run("finalizer", c.finalizer)
	t.Run("refused", c.refused)
	c.ring.Shell("first").Audit(t)
}

type causes struct {
	ring         *ctltest.Ring
	acme         string
	target, away *plane.Plane
}

func (c *causes) add(t *testing.T, name string, more ...string) []string {
	t.Helper()
	file := c.ring.File(t, fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, spec: {kubeconfigSecret: {name: %s}}}", name))
	return append([]string{"servicecluster", "add", name, "-n", c.acme, "--target", c.target.Name(), "-f", file}, more...)
}

func (c *causes) remove(name string) []string {
	return []string{"servicecluster", "remove", name, "-n", c.acme}
}

// named asserts that a run ended with the code, and wrote a line with the prefix line that names
// the peer and the cause.
func (c *causes) named(t *testing.T, r ctltest.Result, code int, line string, cause region.Cause) {
	t.Helper()
	require.Equal(t, code, r.Code, "%s", r)
	require.Regexp(t, `(?m)^`+line+`: .*peer `+c.away.Name()+`: .*`+regexp.QuoteMeta(string(cause)), r.Output)
}

// held requires that as many planes as want hold an object with the name.
func (c *causes) held(t *testing.T, name string, want int) {
	t.Helper()
	var held []string
	for _, p := range c.ring.Planes {
		objects, err := c.ring.Objects(t.Context(), p.Name(), ctltest.ServiceClusters, c.acme)
		require.NoError(t, err)
		if o, there := objects[name]; there {
			held = append(held, o.String())
		}
	}
	require.Len(t, held, want)
}

// An add with a wrong kubeconfig for one peer fails and leaves no object.
func (c *causes) kubeconfig(t *testing.T) {
	stranger, err := c.away.KubeconfigFor("stranger")
	require.NoError(t, err)
	powerless, err := plane.ConfigOf(stranger)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		change func(*api.Cluster, *api.AuthInfo)
		code   int
		cause  region.Cause
	}{
		"dns": {func(c *api.Cluster, _ *api.AuthInfo) { c.Server = "https://peer.invalid:6443" }, ctltest.Failed, region.CauseDNS},
		"tls": {func(cluster *api.Cluster, _ *api.AuthInfo) {
			cluster.CertificateAuthorityData = c.target.Config().CAData
		}, ctltest.Failed, region.CauseUnknownAuthority},
		"credentials": {func(_ *api.Cluster, user *api.AuthInfo) { user.Token = "wrong" }, ctltest.Input, region.CauseUnauthorized},
		"right": {func(_ *api.Cluster, user *api.AuthInfo) {
			*user = api.AuthInfo{ClientCertificateData: powerless.CertData, ClientKeyData: powerless.KeyData}
		}, ctltest.Input, region.CauseForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			shell := c.ring.ShellAs(t, name, c.away.Name(), tc.change).With("--timeout", "4s")
			c.named(t, shell.End(t, c.add(t, name)...), tc.code, "error", tc.cause)
			c.held(t, name, 0)
		})
	}
}

func (c *causes) frozen(t *testing.T) {
	c.ring.Shell("first").Succeed(t, c.add(t, "before")...)
	require.NoError(t, c.away.Pause(t.Context()))
	var runs [3]ctltest.Result
	var errs [3]error
	var running sync.WaitGroup
	for i, args := range [][]string{c.add(t, "frozen"), c.add(t, "frozen", "--unreachable", "wait"), c.remove("before")} {
		running.Go(func() {
			runs[i], errs[i] = c.ring.Shell(fmt.Sprintf("frozen-%d", i)).With("--timeout", "4s").Run(t.Context(), ctltest.Never, args...)
		})
	}
	running.Wait()
	require.NoError(t, c.away.Resume(t.Context()))
	require.NoError(t, errors.Join(errs[:]...))

	added, waited, removed := runs[0], runs[1], runs[2]
	c.named(t, added, ctltest.Failed, "error", region.CauseTimeout)
	c.named(t, waited, ctltest.Failed, "error", region.CauseTimeout)
	c.held(t, "frozen", 0)
	c.named(t, removed, ctltest.Done, "warning", region.CauseTimeout)
	require.Equal(t, ctltest.Done, c.ring.Shell("frozen-2").Recover(t).Code)
	c.held(t, "before", 0)
}

// If a plane is down, an add fails at once, or with --unreachable=wait at its timeout.
func (c *causes) refused(t *testing.T) {
	shell := c.ring.Shell("refused").With("--timeout", "4s")
	require.NoError(t, c.away.Kill(t.Context()))
	failed := shell.End(t, c.add(t, "refused")...)
	waited := shell.End(t, c.add(t, "refused", "--unreachable", "wait")...)
	require.NoError(t, c.away.Restart(t.Context()))
	c.named(t, failed, ctltest.Failed, "error", region.CauseRefused)
	c.named(t, waited, ctltest.Failed, "waiting", region.CauseRefused)
	c.named(t, waited, ctltest.Failed, "error", region.CauseRefused)
	c.held(t, "refused", 0)
}

// The error about an unresponsive admission webhook names the webhook as the cause, not a frozen
// peer.
func (c *causes) webhook(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel accepts connections; no request is answered
	require.NoError(t, err)
	defer silent.Close()
	planetest.Apply(t, c.away, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hang}
webhooks:
- name: hang.example.com
  clientConfig: {url: "https://%s"}
  rules:
  - {apiGroups: [kubecarrier.io], apiVersions: ["*"], resources: [serviceclusters], operations: [CREATE]}
  failurePolicy: Fail
  timeoutSeconds: 2
  sideEffects: None
  admissionReviewVersions: [v1]
`, silent.Addr()))
	client := planetest.Dynamic(t, c.away.Config())
	rehearse := func(ctx context.Context) error {
		_, err := client.Resource(ctltest.ServiceClusters).Namespace(c.acme).Create(ctx, newServiceCluster(c.acme, "rehearsal"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	planetest.Eventually(t, time.Minute, "the webhook is called", func(ctx context.Context) error {
		if err := rehearse(ctx); err == nil || !strings.Contains(err.Error(), "hang.example.com") {
			return fmt.Errorf("answered: %w", err)
		}
		return nil
	})
	shell := c.ring.Shell("webhook").With("--timeout", "10s")
	failed := shell.End(t, c.add(t, "hung")...)
	c.named(t, failed, ctltest.Failed, "waiting", region.CauseWebhookTimeout)
	require.Contains(t, failed.Output, `"hang.example.com"`)
	require.NotRegexp(t, `(?m)^waiting: .*frozen`, failed.Output)
	require.Regexp(t, `(?m)^error: .*peer ap-south: .*webhook`, failed.Output)
	c.held(t, "hung", 0)

	require.NoError(t, client.Resource(webhooks).Delete(t.Context(), "hang", metav1.DeleteOptions{}))
	planetest.Eventually(t, time.Minute, "the webhook is forgotten", rehearse)
	c.ring.Shell("webhook").Succeed(t, c.add(t, "hung")...)
	c.held(t, "hung", len(c.ring.Planes))
}

var webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

// A removal waits while the primary has a finalizer of another controller, and after that while a
// guard has one.
func (c *causes) finalizer(t *testing.T) {
	shell := c.ring.Shell("finalizer")
	shell.Succeed(t, c.add(t, "held")...)
	holders := []*plane.Plane{c.target, c.away}
	for _, p := range holders {
		c.finalizers(t, p, "held", func(own []string) []string { return append(own, "example.com/teardown") })
	}
	late := shell.With("--timeout", "4s")
	waits := func(r ctltest.Result, p *plane.Plane) {
		t.Helper()
		require.Equal(t, ctltest.Doubt, r.Code, "%s", r)
		require.Regexp(t, `(?m)^waiting: ServiceCluster acme/held: peer `+p.Name()+`: finalizer example.com/teardown$`, r.Output)
		require.Regexp(t, `(?m)^warning: .*peer `+p.Name()+`: .*waits for finalizer example.com/teardown`, r.Output)
		require.Regexp(t, `(?m)^error: .*waits for finalizers: example.com/teardown in peer `+p.Name()+`$`, r.Output)
	}
	waits(late.End(t, c.remove("held")...), c.target)
	c.held(t, "held", len(c.ring.Planes))
	release := func(p *plane.Plane) {
		t.Helper()
		c.finalizers(t, p, "held", func(all []string) []string {
			return slices.DeleteFunc(all, func(f string) bool { return f == "example.com/teardown" })
		})
	}
	release(c.target)
	waits(late.End(t, "wal", "recover"), c.away)
	c.held(t, "held", 1)
	release(c.away)
	require.Equal(t, ctltest.Done, shell.Recover(t).Code)
	c.held(t, "held", 0)
}

// finalizers changes the finalizers of a plane's object.
func (c *causes) finalizers(t *testing.T, p *plane.Plane, name string, change func([]string) []string) {
	t.Helper()
	client := planetest.Dynamic(t, p.Config()).Resource(ctltest.ServiceClusters).Namespace(c.acme)
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	obj.SetFinalizers(change(obj.GetFinalizers()))
	_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
}
