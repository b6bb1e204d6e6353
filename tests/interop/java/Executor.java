import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.executor.impl.XxlJobSimpleExecutor;
import com.xxl.job.core.handler.annotation.XxlJob;
import java.util.List;

/** An executor without a framework, on the reference client. */
public class Executor {
    public static void main(String[] arguments) throws InterruptedException {
        XxlJobSimpleExecutor executor = new XxlJobSimpleExecutor();
        executor.setAdminAddresses(System.getenv("INTEROP_CENTRE"));
        executor.setAccessToken(System.getenv("INTEROP_TOKEN"));
        executor.setAppname(System.getenv("INTEROP_APP"));
        executor.setIp("127.0.0.1");
        executor.setPort(Integer.parseInt(System.getenv("INTEROP_PORT")));
        executor.setLogPath("log");
        executor.setXxlJobBeanList(List.of(new Executor()));
        Runtime.getRuntime().addShutdownHook(new Thread(executor::destroy));
        executor.start();
        Thread.currentThread().join();
    }

    @XxlJob("ok")
    public void ok() {
        for (int line = 1; line <= 3; line++) {
            say("ok line " + line);
        }
        say("ok with " + XxlJobHelper.getJobParam());
    }

    @XxlJob("fail")
    public void fail() {
        XxlJobHelper.handleFail("deliberate failure");
    }

    @XxlJob("slow")
    public void slow() throws InterruptedException {
        int seconds = Integer.parseInt(XxlJobHelper.getJobParam());
        try {
            for (int second = 1; second <= seconds; second++) {
                Thread.sleep(1_000);
                say("slow second " + second);
            }
        } catch (InterruptedException interrupted) {
            say("slow was interrupted");
            throw interrupted;
        }
        say("slow is done");
    }

    @XxlJob("shard")
    public void shard() {
        say("shard " + XxlJobHelper.getShardIndex() + "/" + XxlJobHelper.getShardTotal());
    }

    private static void say(String text) {
        XxlJobHelper.log(text);
        System.out.println(text);
    }
}
