import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The peer of bench/workers.py: Confluent's parallel consumer, set up as its own example CoreApp sets it up.
 *
 * Arguments: bootstrap, topic, group, records, KEY or UNORDERED, milliseconds a record, concurrency.
 * Prints the seconds from the start of the first record to the end of the last.
 */
public final class Peer {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int records = Integer.parseInt(args[3]);
        long workMs = Long.parseLong(args[5]);

        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, args[2]);
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false"); // it refuses to start otherwise
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);

        ParallelConsumerOptions<byte[], byte[]> options =
                ParallelConsumerOptions.<byte[], byte[]>builder()
                        .ordering(ProcessingOrder.valueOf(args[4]))
                        .maxConcurrency(Integer.parseInt(args[6]))
                        .consumer(new KafkaConsumer<byte[], byte[]>(properties))
                        .build();
        ParallelStreamProcessor<byte[], byte[]> processor =
                ParallelStreamProcessor.createEosStreamProcessor(options);
        processor.subscribe(List.of(topic));

        AtomicLong began = new AtomicLong();
        CountDownLatch left = new CountDownLatch(records);
        processor.poll(
                context -> {
                    began.compareAndSet(0, System.nanoTime());
                    if (workMs > 0) {
                        try {
                            Thread.sleep(workMs);
                        } catch (InterruptedException stopped) {
                            throw new IllegalStateException(stopped);
                        }
                    }
                    left.countDown();
                });
        left.await();
        System.out.println((System.nanoTime() - began.get()) / 1e9);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
