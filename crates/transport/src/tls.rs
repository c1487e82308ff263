//! Certificates: made here and pinned by hash, or configured.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError as TlsCertificateError, DigitallySignedStruct, SignatureScheme};
use sametick_wire::SchemaHash;
use time::{Duration, OffsetDateTime};

/// How long a certificate made here is good for. Browsers pin only what lives for at most 14 days.
const SELF_SIGNED_DAYS: i64 = 13;

/// A kept certificate that is older than this is replaced at the next start.
const RENEW_AFTER: std::time::Duration = std::time::Duration::from_secs(6 * 86_400);

/// SHA-256 of a certificate, as browsers use it in `serverCertificateHashes`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CertHash(pub [u8; 32]);

impl CertHash {
    /// The hash of a certificate in DER.
    pub fn of(der: &[u8]) -> CertHash {
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        CertHash(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for CertHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CertHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertHash({self})")
    }
}

/// Not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a certificate hash has 64 hexadecimal digits")]
pub struct BadCertHash;

impl FromStr for CertHash {
    type Err = BadCertHash;

    fn from_str(text: &str) -> Result<CertHash, BadCertHash> {
        // As long as a schema hash, and read the same way.
        SchemaHash::from_hex(text).map(|hash| CertHash(*hash.as_bytes())).ok_or(BadCertHash)
    }
}

/// Whom a client believes to be the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whoever has the certificate with this hash.
    Pinned(CertHash),
    /// Whoever has a certificate for the host's name from a public authority.
    Public,
}

/// A certificate chain and its key.
pub struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} should be a PEM file with {what}: {error}", path.display())]
    Pem {
        /// Which.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        error: rustls::pki_types::pem::Error,
    },
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// The certificate and the key do not work together.
    #[error("the certificate cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

impl Certificate {
    /// Makes one for these names, signed by itself.
    pub fn self_signed(names: &[String]) -> Result<Certificate, CertificateError> {
        let mut params = rcgen::CertificateParams::new(names)?;
        let now = OffsetDateTime::now_utc();
        // Begins early, for clocks that are behind.
        params.not_before = now - Duration::hours(1);
        params.not_after = params.not_before + Duration::days(SELF_SIGNED_DAYS);
        let key = rcgen::KeyPair::generate()?;
        let cert = params.self_signed(&key)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Ok(Certificate { chain: vec![cert.der().clone()], key })
    }

    /// Reads a configured one.
    pub fn load(chain_path: &Path, key_path: &Path) -> Result<Certificate, CertificateError> {
        let pem = |path: &Path, what| {
            let path = path.to_owned();
            move |error| CertificateError::Pem { path, what, error }
        };
        let chain = CertificateDer::pem_file_iter(chain_path).and_then(Iterator::collect);
        let chain: Vec<_> = chain.map_err(pem(chain_path, "a certificate chain"))?;
        if chain.is_empty() {
            return Err(pem(chain_path, "a certificate chain")(rustls::pki_types::pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_file(key_path).map_err(pem(key_path, "a private key"))?;
        let certificate = Certificate { chain, key };
        certificate.server_config(&[])?;
        Ok(certificate)
    }

    /// The one kept in a folder, so that its hash stays the same over restarts; made anew while it is still good.
    pub fn kept_in(folder: &Path, names: &[String]) -> Result<Certificate, CertificateError> {
        let (chain_path, key_path) = (folder.join("cert.pem"), folder.join("key.pem"));
        let age = fs::metadata(&chain_path).and_then(|data| data.modified()).map(|at| at.elapsed());
        if matches!(age, Ok(Ok(age)) if age < RENEW_AFTER) && key_path.exists() {
            return Certificate::load(&chain_path, &key_path);
        }
        let new = Certificate::self_signed(names)?;
        write_pem(&key_path, "PRIVATE KEY", new.key.secret_der())?;
        write_pem(&chain_path, "CERTIFICATE", &new.chain[0])?;
        Ok(new)
    }

    /// What clients pin.
    pub fn hash(&self) -> CertHash {
        CertHash::of(&self.chain[0])
    }

    /// A server with this certificate.
    pub fn server_config(&self, alpn: &[&[u8]]) -> Result<rustls::ServerConfig, CertificateError> {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

fn write_pem(path: &Path, label: &str, der: &[u8]) -> Result<(), CertificateError> {
    let file = |error| CertificateError::File { path: path.to_owned(), error };
    let text = pem::encode(&pem::Pem::new(label, der));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut open = options.open(path).map_err(file)?;
    io::Write::write_all(&mut open, text.as_bytes()).map_err(file)
}

/// A client that believes whom `trust` says.
pub fn client_config(trust: Trust, alpn: &[&[u8]]) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::Public => {
            let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Trust::Pinned(hash) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned { hash, provider }))
            .with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Believes one certificate, whatever name or date it has.
#[derive(Debug)]
struct Pinned {
    hash: CertHash,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if CertHash::of(end_entity) == self.hash {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(TlsCertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
