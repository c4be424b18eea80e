// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

func TestParseKubeconfigRefuses(t *testing.T) {
	ca := newAuthority(t)
	_, _, cert, key := ca.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "atoll"}})
	type config = clientcmdv1.Config
	user := func(k *config) *clientcmdv1.AuthInfo { return &k.AuthInfos[0].AuthInfo }
	server := func(k *config) *clientcmdv1.Cluster { return &k.Clusters[0].Cluster }
	for field, edit := range map[string]func(*config){
		"users[0].user.exec":               func(k *config) { user(k).Exec = &clientcmdv1.ExecConfig{Command: "/bin/sh"}; user(k).Token = "" },
		"users[0].user":                    func(k *config) { user(k).Exec = &clientcmdv1.ExecConfig{Command: "/bin/sh"} },
		"users[0].user.auth-provider":      func(k *config) { user(k).AuthProvider = &clientcmdv1.AuthProviderConfig{Name: "oidc"} },
		"users[0].user.tokenFile":          func(k *config) { user(k).TokenFile = "/var/run/secrets/token" },
		"users[0].user.client-certificate": func(k *config) { user(k).ClientCertificate = "/etc/cert" },
		"users[0].user.client-key":         func(k *config) { user(k).ClientKey = "/etc/key" },
		"users[0].user.as":                 func(k *config) { user(k).Impersonate = "root" },
		"users[0].user.as-uid":             func(k *config) { user(k).ImpersonateUID = "0" },
		"users[0].user.as-groups":          func(k *config) { user(k).ImpersonateGroups = []string{"system:masters"} },
		"users[0].user.as-user-extra":      func(k *config) { user(k).ImpersonateUserExtra = map[string][]string{"a": {"b"}} },
		"users[0].user.username":           func(k *config) { user(k).Username = "root" },
		"users[0].user.password":           func(k *config) { user(k).Password = "toor" },
		"users[0].user.token":              func(k *config) { user(k).Token = "a\r\nImpersonate-User: root" },
		"users[0].user.client-certificate-data": func(k *config) {
			user(k).Token, user(k).ClientCertificateData = "", cert
		},
		"clusters[0].cluster.server":                     func(k *config) { server(k).Server = "http://10.0.0.1" },
		"clusters[0].cluster.certificate-authority":      func(k *config) { server(k).CertificateAuthority = "/etc/ca" },
		"clusters[0].cluster.certificate-authority-data": func(k *config) { server(k).CertificateAuthorityData = []byte("none") },
		"clusters[0].cluster.insecure-skip-tls-verify":   func(k *config) { server(k).InsecureSkipTLSVerify = true },
		"clusters[0].cluster.proxy-url":                  func(k *config) { server(k).ProxyURL = "http://proxy:3128" },
		"clusters[0].cluster.tls-server-name":            func(k *config) { server(k).TLSServerName = "A b" },
		"contexts":                                       func(k *config) { k.Contexts = append(k.Contexts, k.Contexts[0]) },
		"clusters":                                       func(k *config) { k.Clusters = nil },
		"users":                                          func(k *config) { k.AuthInfos = append(k.AuthInfos, k.AuthInfos[0]) },
		"current-context":                                func(k *config) { k.CurrentContext = "other" },
		"contexts[0].context.cluster":                    func(k *config) { k.Contexts[0].Context.Cluster = "other" },
		"contexts[0].context.user":                       func(k *config) { k.Contexts[0].Context.AuthInfo = "other" },
		"kind":                                           func(k *config) { k.Kind = "Secret" },
		"apiVersion":                                     func(k *config) { k.APIVersion = "v2" },
	} {
		t.Run(field, func(t *testing.T) {
			_, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1", ca.pem, edit), Trust{})
			refused, ok := errors.AsType[*FieldError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, field, refused.Field)
			require.NotEmpty(t, refused.Accept)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for name, server := range map[string]string{
		"user": "https://a:b@10.0.0.1", "query": "https://10.0.0.1?x", "fragment": "https://10.0.0.1#x", "no host": "https://", "port only": "https://:1",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseKubeconfig(kubeconfig(t, server, ca.pem, nil), Trust{})
			require.ErrorContains(t, err, "clusters[0].cluster.server")
		})
	}
	t.Run("both kinds", func(t *testing.T) {
		_, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1", ca.pem, func(k *config) {
			user(k).ClientCertificateData, user(k).ClientKeyData = cert, key
		}), Trust{})
		require.ErrorContains(t, err, "users[0].user: has 2 kinds of credentials")
	})
	t.Run("unknown field", func(t *testing.T) {
		_, err := ParseKubeconfig([]byte("kind: Config\nusers:\n- name: a\n  user: {tokenfile2: /etc/passwd}\n"), Trust{})
		require.ErrorContains(t, err, "tokenfile2")
	})
	t.Run("too long", func(t *testing.T) {
		_, err := ParseKubeconfig([]byte(strings.Repeat("#", maxKubeconfig+1)), Trust{})
		require.ErrorContains(t, err, "at most 1048576")
	})
}

func TestParseKubeconfigAccepts(t *testing.T) {
	ca := newAuthority(t)
	_, _, cert, key := ca.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "atoll"}})
	creds, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1:6443/prefix", ca.pem, func(k *clientcmdv1.Config) {
		k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		k.Clusters[0].Cluster.TLSServerName = "kubernetes.default"
		k.Extensions = []clientcmdv1.NamedExtension{{Name: "x", Extension: runtime.RawExtension{Raw: []byte(`{"any":"thing"}`)}}}
	}), Trust{})
	require.NoError(t, err)
	require.Equal(t, "https://10.0.0.1:6443/prefix", creds.config.Host)
	require.Equal(t, "kubernetes.default", creds.config.ServerName)
	require.Equal(t, cert, creds.config.CertData)
	require.Empty(t, creds.config.BearerToken)
}

// CVE-2022-24817: a kubeconfig makes the program that reads it run another program.
func TestTrust(t *testing.T) {
	ca := newAuthority(t)
	no := func(*url.URL) error { return errors.New("not that one") }
	yes := func(*url.URL) error { return nil }
	exec := func(e clientcmdv1.ExecConfig) func(*clientcmdv1.Config) {
		e.APIVersion = "client.authentication.k8s.io/v1"
		return func(k *clientcmdv1.Config) { k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{Exec: &e} }
	}
	proxy := func(k *clientcmdv1.Config) { k.Clusters[0].Cluster.ProxyURL = "http://proxy:3128" }
	insecure := func(k *clientcmdv1.Config) {
		k.Clusters[0].Cluster.InsecureSkipTLSVerify, k.Clusters[0].Cluster.CertificateAuthorityData = true, nil
	}
	for _, tt := range []struct {
		name  string
		edit  func(*clientcmdv1.Config)
		trust Trust
		want  string // in the error; empty: accepted
	}{
		{"server refused", nil, Trust{Server: no}, "not that one"},
		{"server accepted", nil, Trust{Server: yes}, ""},
		{"proxy refused", proxy, Trust{Proxy: no}, "not that one"},
		{"proxy accepted", proxy, Trust{Proxy: yes}, ""},
		{"insecure", insecure, Trust{Insecure: true}, ""},
		{"exec listed", exec(clientcmdv1.ExecConfig{Command: "/opt/login"}), Trust{Exec: []string{"/opt/login"}}, ""},
		{"exec not listed", exec(clientcmdv1.ExecConfig{Command: "/opt/other"}), Trust{Exec: []string{"/opt/login"}}, "users[0].user.exec"},
		{"exec by its name", exec(clientcmdv1.ExecConfig{Command: "login"}), Trust{Exec: []string{"/bin/sh", "/opt/login", "/opt/login"}}, ""},
		{"exec by the name of two", exec(clientcmdv1.ExecConfig{Command: "login"}), Trust{Exec: []string{"/opt/login", "/usr/bin/login"}}, "users[0].user.exec"},
		{"exec by a relative path", exec(clientcmdv1.ExecConfig{Command: "./login"}), Trust{Exec: []string{"/opt/login"}}, "users[0].user.exec"},
		{"exec by the name of a relative path", exec(clientcmdv1.ExecConfig{Command: "login"}), Trust{Exec: []string{"opt/login", "login"}}, "users[0].user.exec"},
		{"exec without a name", exec(clientcmdv1.ExecConfig{Command: ""}), Trust{Exec: []string{"/opt/login"}}, "users[0].user.exec"},
		{"exec by way of dots", exec(clientcmdv1.ExecConfig{Command: "/opt/../opt/login"}), Trust{Exec: []string{"/opt/../opt/login"}}, "users[0].user.exec"},
		{"exec with environment", exec(clientcmdv1.ExecConfig{Command: "/opt/login", Env: []clientcmdv1.ExecEnvVar{{Name: "LD_PRELOAD"}}}),
			Trust{Exec: []string{"/opt/login"}}, "users[0].user.exec.env"},
		{"exec with an allowed variable", exec(clientcmdv1.ExecConfig{Command: "/opt/login", Env: []clientcmdv1.ExecEnvVar{{Name: "AWS_PROFILE", Value: "eu"}}}),
			Trust{Exec: []string{"/opt/login"}, Env: []string{"AWS_PROFILE"}}, ""},
		{"exec with another variable", exec(clientcmdv1.ExecConfig{Command: "/opt/login", Env: []clientcmdv1.ExecEnvVar{{Name: "AWS_PROFILE"}, {Name: "PATH"}}}),
			Trust{Exec: []string{"/opt/login"}, Env: []string{"AWS_PROFILE"}}, "users[0].user.exec.env"},
		{"exec with a variable that no process can have", exec(clientcmdv1.ExecConfig{Command: "/opt/login", Env: []clientcmdv1.ExecEnvVar{{Name: "A", Value: "\x00"}}}),
			Trust{Exec: []string{"/opt/login"}, Env: []string{"A"}}, "users[0].user.exec.env"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			creds, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1", ca.pem, tt.edit), tt.trust)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			if e := creds.config.ExecProvider; e != nil {
				require.EqualValues(t, "Allowlist", e.PluginPolicy.PolicyType)
			}
		})
	}
}

// A plugin that asks for the cluster receives the cluster's own settings for it, also from a kept file. Other credentials
// for the same server have another fingerprint.
func TestPluginSettings(t *testing.T) {
	ca := newAuthority(t)
	trust := Trust{Exec: []string{"/opt/login"}, Env: []string{"AWS_PROFILE"}}
	parse := func(profile, settings string, asks bool) Credentials {
		creds, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1", ca.pem, func(k *clientcmdv1.Config) {
			k.Clusters[0].Cluster.Extensions = []clientcmdv1.NamedExtension{{Name: pluginConfig, Extension: runtime.RawExtension{Raw: []byte(settings)}}}
			k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
				Command: "/opt/login", APIVersion: "client.authentication.k8s.io/v1", ProvideClusterInfo: asks,
				Env: []clientcmdv1.ExecEnvVar{{Name: "AWS_PROFILE", Value: profile}},
			}}
		}), trust)
		require.NoError(t, err)
		return creds
	}
	eu := parse("eu", `{"clusterName":"eu"}`, true)
	require.Equal(t, &runtime.Unknown{Raw: []byte(`{"clusterName":"eu"}`), ContentType: runtime.ContentTypeJSON}, eu.config.ExecProvider.Config)
	require.Equal(t, "eu", eu.config.ExecProvider.Env[0].Value)
	require.NotEqual(t, eu.fingerprint, parse("eu", `{"clusterName":"us"}`, true).fingerprint)
	require.NotEqual(t, eu.fingerprint, parse("us", `{"clusterName":"eu"}`, true).fingerprint)
	require.Nil(t, parse("eu", `{"clusterName":"eu"}`, false).config.ExecProvider.Config)

	kept, err := json.Marshal(kubeconfigOf(eu, trust))
	require.NoError(t, err)
	again, err := ParseKubeconfig(kept, trust)
	require.NoError(t, err)
	require.Equal(t, eu.fingerprint, again.fingerprint)
}

func TestCredentialsShowNoSecret(t *testing.T) {
	creds, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1", nil, nil), Trust{})
	require.NoError(t, err)
	encoded, err := json.Marshal(Peer{Name: "eu", Credentials: creds})
	require.NoError(t, err)
	for _, shown := range []string{
		creds.String(), string(encoded), fmt.Sprintf("%v %+v %#v %s %x", creds, creds, creds, creds, creds),
		fmt.Sprintf("%v %+v %#v", Peer{Credentials: creds}, Peer{Credentials: creds}, &Peer{Credentials: creds}),
		slog.AnyValue(creds).Resolve().String(), fmt.Sprint(creds.MarshalLog()),
	} {
		require.NotContains(t, shown, "secret")
		require.NotContains(t, shown, fmt.Sprintf("%x", "secret"))
	}
	require.Contains(t, creds.String(), "10.0.0.1 (")
	require.Equal(t, "none", Credentials{}.String())
}

// A value that the YAML parser rejects may be a secret, so no error repeats it.
func TestUnreadableValuesAreNotRepeated(t *testing.T) {
	for _, token := range []string{"*SECRET", "!!int SECRET", "!!float SE`SECRET`", "!!timestamp SECRET", "|\n SECRET", "\"SECRET\\q\""} {
		text := "users:\n- name: a\n  user:\n    token: " + token + "\n"
		_, err := ParseKubeconfig([]byte(text), Trust{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "SECRET")
		list := filepath.Join(t.TempDir(), "peers.yaml")
		write(t, list, []byte("peers:\n- name: a\n  kubeconfig:\n    token: "+token+"\n"))
		src, err := FromFile(list, Trust{})
		require.NoError(t, err)
		err = src.Run(t.Context(), nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "SECRET")
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	bait := filepath.Join(f.TempDir(), "bait")
	require.NoError(f, os.WriteFile(bait, []byte("bait-of-the-token-file"), 0o600))
	ca := newAuthority(f)
	for _, edit := range []func(*clientcmdv1.Config){
		nil,
		func(k *clientcmdv1.Config) { k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{TokenFile: bait} },
		func(k *clientcmdv1.Config) { k.AuthInfos[0].AuthInfo.ClientKey = bait },
		func(k *clientcmdv1.Config) {
			k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{Command: "/bin/sh"}}
		},
		func(k *clientcmdv1.Config) { k.Clusters[0].Cluster.ProxyURL = "socks5://x:1" },
	} {
		f.Add(kubeconfig(f, "https://10.0.0.1", ca.pem, edit))
	}
	f.Add([]byte("users: [{name: a, user: {TokenFile: " + bait + ", token: b}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		creds, err := ParseKubeconfig(data, Trust{})
		if err != nil {
			_, ok := errors.AsType[*FieldError](err)
			require.True(t, ok, "%v", err)
			return
		}
		c := creds.config
		require.True(t, strings.HasPrefix(c.Host, "https://"), c.Host)
		require.NotContains(t, c.BearerToken, "bait-of")
		for name, text := range map[string]string{
			"token file": c.BearerTokenFile, "CA file": c.CAFile, "certificate file": c.CertFile, "key file": c.KeyFile,
			"username": c.Username, "password": c.Password, "impersonation": c.Impersonate.UserName + c.Impersonate.UID,
		} {
			require.Empty(t, text, name)
		}
		require.False(t, c.Insecure)
		require.Nil(t, c.ExecProvider)
		require.Nil(t, c.AuthProvider)
		require.Nil(t, c.Proxy)
		require.Nil(t, c.Transport)
		require.Nil(t, c.WrapTransport)
		require.Empty(t, c.Impersonate.Groups)
		require.Empty(t, c.Impersonate.Extra)
		require.NotEqual(t, c.BearerToken == "", len(c.CertData) == 0)
	})
}
