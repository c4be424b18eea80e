// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// user is the environment of a user who runs atollctl.
type user struct {
	t   *testing.T
	dir string
	env map[string]string
}

func (u user) run(args ...string) (code int, out, errOut string) {
	u.t.Helper()
	var stdout, stderr bytes.Buffer
	s := u.session()
	s.in, s.out, s.errOut, s.now, s.cleanup, s.lease = strings.NewReader(""), &stdout, &stderr, time.Now, time.Second, 2*time.Second
	code = s.execute(u.t.Context(), append([]string{"atollctl"}, args...))
	return code, stdout.String(), stderr.String()
}

func (u user) write(name, content string, mode os.FileMode) string {
	u.t.Helper()
	path := filepath.Join(u.dir, name)
	require.NoError(u.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(u.t, os.WriteFile(path, []byte(content), mode))
	return path
}

// newUser returns a user with two peers, eu and us. The user's kubeconfig has their contexts: that of
// eu gets its certificate from a credential plugin, and that of us from files.
func newUser(t *testing.T) user {
	u := user{t: t, dir: t.TempDir(), env: map[string]string{}}
	u.env["HOME"] = u.dir
	check := func(err error) { require.NoError(t, err) }
	for _, name := range []string{"eu", "us"} {
		s := newServer(func(f func()) { t.Cleanup(f) }, check, name, true)
		u.write(name+".kubeconfig", string(s.kubeconfig), 0o600)
		config, err := clientcmd.Load(s.kubeconfig)
		require.NoError(t, err)
		from := config.Contexts[config.CurrentContext]
		cluster, account := config.Clusters[from.Cluster], config.AuthInfos[from.AuthInfo]
		certificate, key := string(account.ClientCertificateData), string(account.ClientKeyData)
		require.NotEmpty(t, key)
		account.ClientCertificateData, account.ClientKeyData = nil, nil
		contextName := name
		if name == "eu" {
			contextName = "arn:aws:eks:eu-west-1:1:cluster/prod"
			account.Exec = &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
				Command: u.write("plugin", "#!/bin/sh\nexec cat "+filepath.Join(u.dir, "credential")+"\n", 0o700),
			}
			credential, err := json.Marshal(map[string]any{
				"apiVersion": account.Exec.APIVersion, "kind": "ExecCredential",
				"status": map[string]string{"clientCertificateData": certificate, "clientKeyData": key},
			})
			require.NoError(t, err)
			u.write("credential", string(credential), 0o600)
		} else { // relative to the kubeconfig
			account.ClientCertificate = filepath.Base(u.write("user.crt", certificate, 0o600))
			account.ClientKey = filepath.Base(u.write("user.key", key, 0o600))
		}
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = filepath.Base(u.write(name+".crt", string(cluster.CertificateAuthorityData), 0o600)), nil
		own := clientcmdapi.NewConfig()
		own.Clusters[contextName], own.AuthInfos[contextName] = cluster, account
		own.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
		require.NoError(t, clientcmd.WriteToFile(*own, filepath.Join(u.dir, name+".own")))
	}
	u.env["KUBECONFIG"] = filepath.Join(u.dir, "eu.own") + string(os.PathListSeparator) + filepath.Join(u.dir, "us.own")
	return u
}

// Peers are named by contexts of the user's kubeconfig, whose credentials come from a plugin and from
// files, as with kubectl.
func TestContexts(t *testing.T) {
	u := newUser(t)
	names := []string{"--context", "eu=arn:aws:eks:eu-west-1:1:cluster/prod", "--context", "us"}
	code, _, errOut := u.run(append(names, "peer", "init")...)
	require.Equal(t, exitDone, code, errOut)
	code, out, errOut := u.run(append(names, "peers", "-o", "name")...)
	require.Equal(t, exitDone, code, errOut)
	require.Equal(t, "peer.atollctl.atoll.dev/eu\npeer.atollctl.atoll.dev/us\n", out)

	code, out, errOut = u.run(append(names, "doctor")...)
	require.Equal(t, exitDone, code, errOut)
	require.Regexp(t, `eu +Expiry +OK +a credential plugin provides`, out)
	require.Regexp(t, `us +Expiry +OK +client certificate: valid until `, out)

	t.Run("beside a kubeconfig", func(t *testing.T) {
		code, _, errOut := u.run("--context", "us", "--kubeconfig", "eu="+filepath.Join(u.dir, "eu.kubeconfig"), "peers")
		require.Equal(t, exitDone, code, errOut)
	})
	t.Run("of the default kubeconfig", func(t *testing.T) {
		home := user{t, u.dir, map[string]string{"HOME": u.dir}}
		config, err := home.session().loadingRules().Load()
		require.NoError(t, err)
		require.Empty(t, config.Contexts)
		own, err := clientcmd.LoadFromFile(filepath.Join(u.dir, "us.own"))
		require.NoError(t, err)
		require.NoError(t, clientcmd.ResolveLocalPaths(own))
		require.NoError(t, clientcmd.WriteToFile(*own, filepath.Join(u.dir, ".kube", "config")))
		code, _, errOut := home.run("--context", "us", "--kubeconfig", "eu="+filepath.Join(u.dir, "eu.kubeconfig"), "peers")
		require.Equal(t, exitDone, code, errOut)
		require.Equal(t, []string{"us"}, home.session().contextNames())
	})
	for want, flags := range map[string][]string{
		`peer eu: context nowhere: context "nowhere" does not exist`: {"--context", "eu=nowhere"},
		`--context "EU" names no peer and context`:                   {"--context", "EU"},
		`--context "eu=" names no peer and context`:                  {"--context", "eu="},
		"--config and --context both name peers":                     {"--context", "us", "--config", "peers.yaml"},
		`peer us: kubeconfig ` + filepath.Join(u.dir, "us.own") + `: clusters[0].cluster.certificate-authority: names a local file`: {"--kubeconfig", "us=" + filepath.Join(u.dir, "us.own")},
	} {
		code, _, errOut := u.run(append(flags, "peers")...)
		require.Equal(t, exitInput, code)
		require.Contains(t, errOut, want)
		require.Contains(t, errOut, "remedy: ")
	}
}

func (u user) session() *session {
	return &session{getenv: func(name string) string { return u.env[name] }}
}

// Without flags that name peers, atollctl reads the file of ATOLL_CONFIG, else the one in the user's
// directory of configurations.
func TestDefaultConfig(t *testing.T) {
	u := newUser(t)
	code, _, errOut := u.run("peers")
	require.Equal(t, exitInput, code)
	require.Contains(t, errOut, "no peers are named")
	require.Contains(t, errOut, "--context NAME=CONTEXT")

	const list = "peers:\n- {name: %s, kubeconfig: %s}\n"
	u.write(".config/atoll/peers.yaml", fmt.Sprintf(list, "eu", "../../eu.kubeconfig"), 0o600)
	_, out, errOut := u.run("peers", "-o", "name")
	require.Contains(t, out, "eu", errOut)
	require.Equal(t, []string{"eu"}, u.session().peerNames())

	u.write("xdg/atoll/peers.yaml", fmt.Sprintf(list, "us", "../../us.kubeconfig"), 0o600)
	u.env["XDG_CONFIG_HOME"] = filepath.Join(u.dir, "xdg")
	_, out, errOut = u.run("peers", "-o", "name")
	require.Contains(t, out, "us", errOut)

	u.env["ATOLL_CONFIG"] = u.write("other.yaml", fmt.Sprintf(list, "eu", "eu.kubeconfig"), 0o600)
	_, out, errOut = u.run("peers", "-o", "name")
	require.Contains(t, out, "eu", errOut)

	u.env["ATOLL_CONFIG"] = filepath.Join(u.dir, "absent.yaml")
	code, _, errOut = u.run("peers")
	require.Equal(t, exitInput, code)
	require.Contains(t, errOut, "absent.yaml")

	s := u.session()
	s.contexts = []string{"us"}
	listed, err := s.listed(context.Background())
	require.NoError(t, err, "flags win")
	require.Equal(t, "us", string(listed[0].Name))
}
