package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TokenLifetime is how long a service account's kubeconfig works.
const TokenLifetime = 24 * time.Hour

// AccountKubeconfig returns a kubeconfig for the server of the kubeconfig file
// admin, with the identity of an existing service account.
func AccountKubeconfig(ctx context.Context, admin, namespace, name string) ([]byte, error) {
	client, err := Client(admin)
	if err != nil {
		return nil, err
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(TokenLifetime.Seconds()))},
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot get a token of service account %s/%s: %w", namespace, name, err)
	}
	config, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig %s: %w", admin, err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{
		config.Contexts[config.CurrentContext].AuthInfo: {Token: token.Status.Token},
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the kubeconfig of %s/%s: %w", namespace, name, err)
	}
	return data, nil
}
