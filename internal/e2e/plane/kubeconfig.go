// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig of a cluster administrator (the group
// system:masters, which RBAC does not restrict), with a bearer token.
func (p *Plane) Kubeconfig() []byte { return append([]byte(nil), p.admin...) }

// KubeconfigFor returns a kubeconfig with a client certificate for a user of the given name and
// groups. The user has the rights that RBAC grants it, at first none.
func (p *Plane) KubeconfigFor(user string, groups ...string) ([]byte, error) {
	signed, err := p.authority.client(user, groups)
	if err != nil {
		return nil, fmt.Errorf("%s: signing a certificate for %s: %w", p.name, user, err)
	}
	return p.kubeconfig(&api.AuthInfo{ClientCertificateData: signed.certificate, ClientKeyData: signed.key})
}

// Config returns a new configuration of the administrator, without a client
// side limit on the rate of requests. The caller may change it.
func (p *Plane) Config() *rest.Config {
	return &rest.Config{
		Host:            p.Server(),
		BearerToken:     p.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.authority.pem},
		QPS:             -1,
	}
}

// ConfigOf parses a kubeconfig of this package. Like the result of Config, the
// configuration has no client side limit on the rate of requests.
func ConfigOf(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

func (p *Plane) kubeconfig(auth *api.AuthInfo) ([]byte, error) {
	config := api.NewConfig()
	config.Clusters[p.name] = &api.Cluster{Server: p.Server(), CertificateAuthorityData: p.authority.pem}
	config.AuthInfos[p.name] = auth
	config.Contexts[p.name] = &api.Context{Cluster: p.name, AuthInfo: p.name}
	config.CurrentContext = p.name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("%s: writing a kubeconfig: %w", p.name, err)
	}
	return data, nil
}
