//! A driver under fire: many callers at random, and a model of what must be true.
//!
//! ```text
//!  callers ──► one volume at a time, alone or two calls at once ──► the driver, over its socket
//!     │                                                               ▲
//!     │ what the model expects of each state that is possible         │ kill -9, of it or of its LVM workers
//!     ▼                                                               │
//!  beliefs: the states that the answers so far leave possible      killer
//! ```
//!
//! An answer that fits no possible state is a fault; so is, when all calls have ended, a volume too many or too few, a wrong
//! size, content that was acknowledged and is not there, a mount or a device too many, and space that does not come back.

mod audit;
mod belief;
mod call;
mod caller;
mod content;
mod copies;
mod killer;
mod run;

pub use audit::Backing;
pub use run::{Plan, Uses, run};
