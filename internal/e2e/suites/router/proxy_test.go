// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// team grants alice her rights in a namespace of one plane. bob may only read pods there. Neither
// user has rights elsewhere.
const team = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: team, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods/exec, pods/attach, pods/portforward], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: team, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: team}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: readers, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: readers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`

// formTeam creates the roles and bindings of team. It returns when the API server's authorizer
// knows the roles and bindings, which it watches.
func formTeam(t *testing.T, p *plane.Plane, namespace string) {
	t.Helper()
	planetest.Apply(t, p, fmt.Sprintf(team, namespace))
	reviews := planetest.Dynamic(t, p.Config()).Resource(authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews"))
	for _, who := range []string{"user: alice, groups: [dev], resourceAttributes: {resource: configmaps, verb: list", "user: bob, resourceAttributes: {resource: pods, verb: list"} {
		review := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {"+who+", namespace: "+namespace+"}}}"), &review.Object))
		planetest.Eventually(t, time.Minute, "the right of "+who, func(ctx context.Context) error {
			answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
				return errors.New("it is not known yet")
			}
			return nil
		})
	}
}

const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: %s}}"

// TestKubectl runs kubectl through the proxy, as people do.
func TestKubectl(t *testing.T) {
	g := newGateway(t)
	p := g.planes[0]
	namespace := planetest.Namespace(t, g.planes...)
	formTeam(t, p, namespace)
	const path = "/regions/eu-west-1.loodse"
	alice, bob := g.kubectl(t, path, "token-of-alice"), g.kubectl(t, path, "token-of-bob")
	in := "--namespace=" + namespace

	t.Run("apply and get", func(t *testing.T) {
		out := alice.must(t, fmt.Sprintf(settings, "green"), "apply", "--server-side", in, "-f", "-")
		require.Equal(t, "configmap/settings serverside-applied\n", out)
		require.Equal(t, "green", alice.must(t, "", "get", in, "configmap", "settings", "-o", "jsonpath={.data.color}"))
		require.Equal(t, "green", g.kubectl(t, "/clusters/eu-west-1.loodse", "token-of-alice").must(t, "", "get", in, "configmap", "settings", "-o", "jsonpath={.data.color}"))
		require.Contains(t, alice.must(t, "", "api-resources", "--api-group=apps"), "deployments")
		require.Contains(t, alice.must(t, "", "auth", "whoami"), "alice")
	})
	t.Run("watch", func(t *testing.T) {
		lines, stop := alice.start(t, "get", in, "configmap", "settings", "--watch", "-o", "jsonpath={.data.color}{'\\n'}")
		require.Equal(t, "green", next(t, lines))
		for _, color := range []string{"red", "blue"} {
			alice.must(t, fmt.Sprintf(settings, color), "apply", "--server-side", in, "-f", "-")
			require.Equal(t, color, next(t, lines))
		}
		stop()
	})
	t.Run("refused by the peer", func(t *testing.T) {
		bob.refused(t, `User "bob" cannot patch resource "configmaps"`, fmt.Sprintf(settings, "black"), "apply", "--server-side", in, "-f", "-")
		alice.refused(t, `User "alice" cannot list resource "secrets"`, "", "get", in, "secrets")
		alice.refused(t, `User "alice" cannot list resource "configmaps"`, "", "get", "--namespace=kube-system", "configmaps")
		there := g.kubectl(t, "/regions/us-east-1.loodse", "token-of-alice")
		there.refused(t, `User "alice" cannot list resource "configmaps"`, "", "get", in, "configmaps")
	})
	t.Run("refused by the proxy", func(t *testing.T) {
		g.kubectl(t, path, "token-of-mallory").refused(t, "You must be logged in", "", "get", in, "configmaps")
		g.kubectl(t, path, "token-of-root").refused(t, "requests cannot be made as this user", "", "get", "--raw", "/version")
		g.kubectl(t, "/regions/nowhere.loodse", "token-of-alice").refused(t, "is not served here", "", "get", "--raw", "/version")
		g.kubectl(t, "/peers/eu-west", "token-of-alice").refused(t, "nothing is served at this path", "", "get", "--raw", "/version")
		for _, as := range [][]string{{"--as=bob"}, {"--as=root", "--as-group=system:masters"}, {"--as=alice", "--as-uid=1"}} {
			alice.refused(t, "impersonation is not possible here", "", append([]string{"get", in, "configmaps"}, as...)...)
			alice.refused(t, "impersonation is not possible here", "", append([]string{"get", in, "configmaps", "--watch"}, as...)...)
			alice.refused(t, "impersonation is not possible here", "", append(append([]string{"exec", in, "web"}, as...), "--", "ls")...)
		}
	})
}

// TestStreams uses exec, attach and port-forward, which upgrade the connection, by WebSocket and by
// SPDY. It also reads logs.
func TestStreams(t *testing.T) {
	g := newGateway(t)
	p := g.planes[0]
	namespace := planetest.Namespace(t, p)
	formTeam(t, p, namespace)
	say := newNode(t, p)
	newPod(t, p, namespace, "web")
	for _, merged := range []bool{false, true} {
		t.Run(map[bool]string{false: "one region", true: "all regions"}[merged], func(t *testing.T) {
			path, web := "/regions/eu-west-1.loodse", "web"
			if merged {
				path, web = "/regions/*", "web@eu-west-1.loodse"
			}
			streams(t, g, path, "--namespace="+namespace, web, say)
		})
	}
}

// streams uses the streams of the pod web.
func streams(t *testing.T, g *gateway, path, in, web string, say func(line string)) {
	t.Helper()
	bob := g.kubectl(t, path, "token-of-bob")
	t.Run("logs", func(t *testing.T) {
		alice := g.kubectl(t, path, "token-of-alice")
		require.Equal(t, logged, alice.must(t, "", "logs", in, web))
		lines, stop := alice.start(t, "logs", in, web, "--follow")
		require.Equal(t, "the first line", next(t, lines))
		require.Equal(t, "the second line", next(t, lines))
		stop()
		require.Contains(t, bob.must(t, "", "get", in, "pod", web), web)
		bob.refused(t, `User "bob" cannot get resource "pods/log"`, "", "logs", in, web)
	})
	for name, env := range map[string][]string{
		"WebSocket": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true", "KUBECTL_PORT_FORWARD_WEBSOCKETS=true"},
		"SPDY":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
	} {
		alice, bob := g.kubectl(t, path, "token-of-alice", env...), g.kubectl(t, path, "token-of-bob", env...)
		t.Run("exec by "+name, func(t *testing.T) {
			require.Equal(t, "said there\n", alice.must(t, "", "exec", in, web, "--", "echo", "said there"))
			big := strings.Repeat("0123456789abcdef", 1<<14)
			// KWOK does not close the command's input, so the command must know the length.
			require.Equal(t, big, alice.must(t, big, "exec", in, "-i", web, "--", "head", "-c", fmt.Sprint(len(big))))
			out, err := alice.run(t, "", "exec", in, web, "--", "sh", "-c", "exit 3")
			require.Error(t, err)
			require.Contains(t, out, "exit status 3") // KWOK's words
			bob.refused(t, `User "bob" cannot`, "", "exec", in, web, "--", "echo", "said there")
		})
		t.Run("attach by "+name, func(t *testing.T) {
			lines, stop := alice.start(t, "attach", in, web)
			heard := make(chan struct{})
			var saying sync.WaitGroup
			saying.Go(func() { // lines from before the attach are not shown
				for {
					say("hello")
					select {
					case <-heard:
						return
					case <-time.After(100 * time.Millisecond):
					}
				}
			})
			require.Equal(t, "hello", next(t, lines))
			close(heard)
			saying.Wait()
			stop()
		})
		t.Run("port-forward by "+name, func(t *testing.T) {
			lines, stop := alice.start(t, "port-forward", in, web, ":80", "--address=127.0.0.1")
			port := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(next(t, lines))
			require.Len(t, port, 2)
			for range 2 {
				require.Equal(t, "through the port", fetch(t, "http://127.0.0.1:"+port[1]))
			}
			stop()
			bob.refused(t, `User "bob" cannot`, "", "port-forward", in, web, ":80")
		})
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}
