// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// maxKubeconfig is the greatest size of a kubeconfig in bytes: the size limit of a Secret.
const maxKubeconfig = 1 << 20

// Trust allows content that ParseKubeconfig otherwise rejects. The zero value allows only an https server, CA data,
// token and client certificate data. File paths and impersonation cannot be allowed.
type Trust struct {
	Exec     []string             // absolute paths of credential plugins that may run, with the arguments of the kubeconfig, which may name them without the directory
	Env      []string             // names of variables that the kubeconfig may set for a plugin of Exec, such as AWS_PROFILE
	Proxy    func(*url.URL) error // nil rejects proxy-url
	Server   func(*url.URL) error // nil accepts any https address
	Insecure bool                 // insecure-skip-tls-verify, for demonstrations
}

// ParseKubeconfig checks data (YAML or JSON, at most 1 MiB) as hostile input, before it uses any of it. Errors are
// *FieldError and name the field ("users[0].user.exec") and an accepted value. It reads no file, runs no program and
// opens no connection. data must have one context, one cluster and one user; without CA data the system's roots apply.
func ParseKubeconfig(data []byte, trust Trust) (Credentials, error) {
	if len(data) > maxKubeconfig {
		return Credentials{}, &FieldError{Reason: fmt.Sprintf("has %d bytes", len(data)), Accept: fmt.Sprintf("at most %d", maxKubeconfig)}
	}
	// Only this structure is used. clientcmd is never called: it reads tokenFile while it parses.
	var k clientcmdv1.Config
	if err := yaml.UnmarshalStrict(data, &k); err != nil {
		return Credentials{}, &FieldError{Reason: "cannot be read", Accept: "a kubeconfig in YAML or JSON", Err: withoutValues(err)}
	}
	if err := checkShape(&k); err != nil {
		return Credentials{}, err
	}
	config := &rest.Config{}
	if err := readCluster(config, &k.Clusters[0].Cluster, trust); err != nil {
		return Credentials{}, err
	}
	if err := readUser(config, &k.AuthInfos[0].AuthInfo, trust); err != nil {
		return Credentials{}, err
	}
	readPluginConfig(config, &k.Clusters[0].Cluster)
	return Credentials{config: config, fingerprint: fingerprint(config, k.Clusters[0].Cluster.ProxyURL)}, nil
}

// checkShape requires exactly one context, with the cluster and user that it names.
func checkShape(k *clientcmdv1.Config) error {
	if k.APIVersion != "" && k.APIVersion != "v1" {
		return &FieldError{Field: "apiVersion", Reason: "is not known", Accept: "v1"}
	}
	if k.Kind != "" && k.Kind != "Config" {
		return &FieldError{Field: "kind", Reason: "is not known", Accept: "Config"}
	}
	for _, list := range []struct {
		field string
		n     int
	}{{"contexts", len(k.Contexts)}, {"clusters", len(k.Clusters)}, {"users", len(k.AuthInfos)}} {
		if list.n != 1 {
			return &FieldError{Field: list.field, Reason: fmt.Sprintf("has %d entries", list.n),
				Accept: "exactly one, as kubectl config view --minify --flatten prints"}
		}
	}
	context := k.Contexts[0]
	if k.CurrentContext != "" && k.CurrentContext != context.Name {
		return &FieldError{Field: "current-context", Reason: "is not in contexts", Accept: fmt.Sprintf("empty, or %q", context.Name)}
	}
	if context.Context.Cluster != k.Clusters[0].Name {
		return &FieldError{Field: "contexts[0].context.cluster", Reason: "is not in clusters", Accept: fmt.Sprintf("%q", k.Clusters[0].Name)}
	}
	if context.Context.AuthInfo != k.AuthInfos[0].Name {
		return &FieldError{Field: "contexts[0].context.user", Reason: "is not in users", Accept: fmt.Sprintf("%q", k.AuthInfos[0].Name)}
	}
	return nil
}

// inCluster and inUser are the prefixes of the names of fields in errors.
const (
	inCluster = "clusters[0].cluster."
	inUser    = "users[0].user."
)

func readCluster(config *rest.Config, c *clientcmdv1.Cluster, trust Trust) error {
	if err := readServer(config, c, trust); err != nil {
		return err
	}
	if err := readAuthority(config, c, trust); err != nil {
		return err
	}
	config.DisableCompression = c.DisableCompression
	return readProxy(config, c, trust)
}

func readServer(config *rest.Config, c *clientcmdv1.Cluster, trust Trust) error {
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil ||
		server.RawQuery != "" || server.ForceQuery || server.Fragment != "" || server.Opaque != "" {
		return &FieldError{Field: inCluster + "server", Reason: "is not an https address", Accept: "https://HOST[:PORT][/PATH], without user or query"}
	}
	if trust.Server != nil {
		if err := trust.Server(server); err != nil {
			return &FieldError{Field: inCluster + "server", Reason: "is refused by Trust.Server", Accept: "what that function accepts", Err: err}
		}
	}
	config.Host = server.String()
	return nil
}

// readAuthority reads the fields that determine how the server's certificate is verified.
func readAuthority(config *rest.Config, c *clientcmdv1.Cluster, trust Trust) error {
	if c.CertificateAuthority != "" {
		return &FieldError{Field: inCluster + "certificate-authority", Reason: "names a local file", Accept: "certificate-authority-data"}
	}
	if len(c.CertificateAuthorityData) > 0 {
		if !x509.NewCertPool().AppendCertsFromPEM(c.CertificateAuthorityData) {
			return &FieldError{Field: inCluster + "certificate-authority-data", Reason: "holds no certificate", Accept: "base64 of PEM certificates"}
		}
		config.CAData = slices.Clone(c.CertificateAuthorityData)
	}
	if c.InsecureSkipTLSVerify {
		if !trust.Insecure {
			return &FieldError{Field: inCluster + "insecure-skip-tls-verify", Reason: "accepts any server",
				Accept: "certificate-authority-data, or Trust.Insecure"}
		}
		if len(config.CAData) > 0 {
			return &FieldError{Field: inCluster + "insecure-skip-tls-verify", Reason: "contradicts certificate-authority-data", Accept: "one of the two"}
		}
		config.Insecure = true
	}
	if c.TLSServerName != "" {
		if msgs := validation.IsDNS1123Subdomain(c.TLSServerName); len(msgs) > 0 {
			return &FieldError{Field: inCluster + "tls-server-name", Reason: "is not a host name", Accept: "a DNS name in lower case"}
		}
		config.ServerName = c.TLSServerName
	}
	return nil
}

func readProxy(config *rest.Config, c *clientcmdv1.Cluster, trust Trust) error {
	if c.ProxyURL == "" {
		return nil
	}
	if trust.Proxy == nil {
		return &FieldError{Field: inCluster + "proxy-url", Reason: "sends requests elsewhere", Accept: "none, or what Trust.Proxy allows"}
	}
	proxy, err := url.Parse(c.ProxyURL)
	if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
		return &FieldError{Field: inCluster + "proxy-url", Reason: "is not a proxy's address", Accept: "http, https or socks5://HOST:PORT"}
	}
	if err := trust.Proxy(proxy); err != nil {
		return &FieldError{Field: inCluster + "proxy-url", Reason: "is refused by Trust.Proxy", Accept: "what that function accepts", Err: err}
	}
	config.Proxy = http.ProxyURL(proxy)
	return nil
}

func readUser(config *rest.Config, u *clientcmdv1.AuthInfo, trust Trust) error {
	if err := checkUser(u); err != nil {
		return err
	}
	token, certificate := u.Token != "", len(u.ClientCertificateData) > 0 || len(u.ClientKeyData) > 0
	given := 0
	for _, set := range []bool{token, certificate, u.Exec != nil} {
		if set {
			given++
		}
	}
	if u.Exec != nil && given > 1 || given == 0 || token && certificate {
		return &FieldError{Field: strings.TrimSuffix(inUser, "."), Reason: fmt.Sprintf("has %d kinds of credentials", given),
			Accept: "either token or client certificate data; a server that sees both looks only at the certificate"}
	}
	switch {
	case token:
		if strings.ContainsFunc(u.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return &FieldError{Field: inUser + "token", Reason: "holds a character that is not allowed in a token", Accept: "a bearer token without white space"}
		}
		config.BearerToken = u.Token
	case certificate:
		if _, err := tls.X509KeyPair(u.ClientCertificateData, u.ClientKeyData); err != nil {
			return &FieldError{Field: inUser + "client-certificate-data", Reason: "is not a certificate with its key in client-key-data",
				Accept: "base64 of a PEM certificate, and of its key"}
		}
		config.CertData, config.KeyData = slices.Clone(u.ClientCertificateData), slices.Clone(u.ClientKeyData)
	default:
		return readExec(config, u.Exec, trust)
	}
	return nil
}

// checkUser refuses fields that no Trust allows.
func checkUser(u *clientcmdv1.AuthInfo) error {
	for _, refused := range []struct {
		field       string
		set         bool
		why, accept string
	}{
		{"client-certificate", u.ClientCertificate != "", "names a local file", "client-certificate-data"},
		{"client-key", u.ClientKey != "", "names a local file", "client-key-data"},
		{"tokenFile", u.TokenFile != "", "names a local file, which would be sent to the server", "token"},
		{"as", u.Impersonate != "", "impersonates", "the credentials of the identity itself"},
		{"as-uid", u.ImpersonateUID != "", "impersonates", "the credentials of the identity itself"},
		{"as-groups", len(u.ImpersonateGroups) > 0, "impersonates", "the credentials of the identity itself"},
		{"as-user-extra", len(u.ImpersonateUserExtra) > 0, "impersonates", "the credentials of the identity itself"},
		{"username", u.Username != "", "is basic authentication, which API servers no longer support", "token or client certificate data"},
		{"password", u.Password != "", "is basic authentication, which API servers no longer support", "token or client certificate data"},
		{"auth-provider", u.AuthProvider != nil, "runs code of client-go's plugins", "token or client certificate data"},
	} {
		if refused.set {
			return &FieldError{Field: inUser + refused.field, Reason: refused.why, Accept: refused.accept}
		}
	}
	return nil
}

// plugin returns the path of the allowed program that a command names, or false. A command without a directory, as the
// tools of cloud providers write it, names the only allowed program with this file name. It is never searched in PATH.
func (t Trust) plugin(command string) (path string, ok bool) {
	if filepath.IsAbs(command) {
		return command, filepath.Clean(command) == command && slices.Contains(t.Exec, command)
	}
	for _, allowed := range t.Exec {
		if filepath.IsAbs(allowed) && filepath.Base(allowed) == command {
			if path != "" && path != allowed {
				return "", false
			}
			path = allowed
		}
	}
	return path, path != ""
}

// readExec accepts a credential plugin whose path the program allows. client-go checks the path again when it runs the
// plugin.
func readExec(config *rest.Config, e *clientcmdv1.ExecConfig, trust Trust) error {
	const at = inUser + "exec"
	command, ok := trust.plugin(e.Command)
	if !ok {
		return &FieldError{Field: at, Reason: "runs a program", Accept: "token or client certificate data, or a program whose absolute path is in Trust.Exec"}
	}
	if e.APIVersion != "client.authentication.k8s.io/v1" && e.APIVersion != "client.authentication.k8s.io/v1beta1" {
		return &FieldError{Field: at + ".apiVersion", Reason: "is not known", Accept: "client.authentication.k8s.io/v1"}
	}
	if e.InteractiveMode == clientcmdv1.AlwaysExecInteractiveMode {
		return &FieldError{Field: at + ".interactiveMode", Reason: "asks at a terminal", Accept: "Never"}
	}
	var env []clientcmdapi.ExecEnvVar
	for _, v := range e.Env {
		if !slices.Contains(trust.Env, v.Name) || strings.ContainsRune(v.Value, 0) {
			return &FieldError{Field: at + ".env", Reason: "changes what the program does, for example by LD_PRELOAD", Accept: "args, a variable whose name is in Trust.Env, or the environment of this process"}
		}
		env = append(env, clientcmdapi.ExecEnvVar{Name: v.Name, Value: v.Value})
	}
	config.ExecProvider = &clientcmdapi.ExecConfig{
		Command:            command,
		Args:               slices.Clone(e.Args),
		Env:                env,
		APIVersion:         e.APIVersion,
		ProvideClusterInfo: e.ProvideClusterInfo,
		InteractiveMode:    clientcmdapi.NeverExecInteractiveMode,
		StdinUnavailable:   true,
		PluginPolicy: clientcmdapi.PluginPolicy{
			PolicyType: clientcmdapi.PluginPolicyAllowlist,
			Allowlist:  []clientcmdapi.AllowlistEntry{{Command: command}},
		},
	}
	return nil
}

// pluginConfig is the extension of a cluster that client-go passes on to plugins with provideClusterInfo.
const pluginConfig = "client.authentication.k8s.io/exec"

// readPluginConfig keeps what the cluster's entry has for the plugin. The plugin may run, so it may also read this.
func readPluginConfig(config *rest.Config, c *clientcmdv1.Cluster) {
	if config.ExecProvider == nil || !config.ExecProvider.ProvideClusterInfo {
		return
	}
	for _, e := range c.Extensions {
		if e.Name == pluginConfig && len(e.Extension.Raw) > 0 {
			config.ExecProvider.Config = &runtime.Unknown{Raw: slices.Clone(e.Extension.Raw), ContentType: runtime.ContentTypeJSON}
		}
	}
}
